from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon import demo
from sgmon.analyse.log.fold import LogFold
from sgmon.collect.probes.base import Clock, Watched
from sgmon.model import LogReading
from sgmon.settings import Settings
from tests.logs import starts


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
    def make(server=None, **settings: object) -> Watched:
        return Watched(Settings(**settings), clock, server)

    return make


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is first on PATH: doubles of docker, journalctl and the like are written into it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    yield folder


@pytest.fixture(scope="session")
def bare() -> list[tuple[str, str]]:
    """(milestone, rank) of the same start on the bare host, sorted: two ranks print in any order."""
    with demo.start("healthy", tp=2, speed=starts.SPEED) as server:
        end = time.monotonic() + 100
        while "ready to roll" not in (text := Path(server.log).read_text()):
            assert time.monotonic() < end
            time.sleep(0.1)
    fold = LogFold()
    fold.feed(LogReading(path="log", text=text), 0.0)
    return starts.kinds(fold.state().milestones)
