from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.collect.probes.base import Clock, Watched
from sgmon.settings import Settings


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
