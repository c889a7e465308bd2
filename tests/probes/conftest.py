from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.collect.probes.base import Clock, Watched
from sgmon.model import Server
from sgmon.settings import Settings
from tests.fakenvml.library import State, build


class ShiftedClock(Clock):
    """The real clock, which a test can put forward instead of sleeping."""

    shift_s = 0.0

    def now(self) -> float:
        return super().now() + self.shift_s


@pytest.fixture
def clock() -> ShiftedClock:
    return ShiftedClock()


@pytest.fixture
def watch(clock: ShiftedClock):
    def make(server: Server | None = None, **settings: object) -> Watched:
        return Watched(Settings(**settings), clock, server)

    return make


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(nvml_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    """The state of an NVML double that children started from now on will load."""
    state = State(tmp_path / "nvml.txt")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_folder))
    monkeypatch.setenv("FAKE_NVML_STATE", str(state.path))
    yield state
