from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.collect import source as source_module
from tests.fakenvml.library import State, build
from tests.faults.screen import Screen
from tests.faults.world import World


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is drawn each 100 ms instead of 250: a test waits for one after each of its steps."""
    monkeypatch.setattr(source_module, "TICK_S", 0.1)


@pytest.fixture(scope="package")
def screen() -> Iterator[Screen]:
    """One dashboard for all faults; a panel's own error fails the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGMON_STRICT_PANELS", "1")
        made = Screen()
        yield made
        made.close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds calls up until the test is over."""
    made = threading.Event()
    yield made
    made.set()


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(nvml_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """The state of an NVML double that children started from now on will load."""
    state = State(tmp_path / "nvml.txt")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_folder))
    monkeypatch.setenv("FAKE_NVML_STATE", str(state.path))
    return state
