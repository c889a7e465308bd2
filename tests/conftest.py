"""No test may write to the history of the person who runs them, or be swayed by it. What is heavy is opted in; what
takes long begins first."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests.scheduling import FilesInOrder, longest_first

#: markers of tests that run only where they are asked for, and why
OPT_IN = {"nodes": "heavy: run it with -m nodes", "soak": "takes a minute: run it with -m soak"}

# how long an example takes is a matter of the machine's load
settings.register_profile("sgmon", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sgmon")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``pytest -m nodes tests/nodes``, ``pytest -m soak tests/soak``."""
    for marker, reason in OPT_IN.items():
        if marker in config.getoption("markexpr"):
            continue
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Some hundred thousand objects are made that all live to the end: none of them is looked at for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesInOrder | None:
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return FilesInOrder(config, log)


@pytest.fixture(scope="module")
def utc() -> Iterator[None]:
    """Dates in logs are local times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="session", autouse=True)
def own_state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Children inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
