"""A recording played back: the same at a time, however one came there; pause, step, speed, seek, changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sgmon.model import Snapshot
from sgmon.recording.replay import ReplaySource
from sgmon.watch.engine import Engine
from tests.recorded import RECORDINGS

RECORDING = RECORDINGS / "gpu-tp2-stop1.jsonl.gz"
LIMIT_S = 100.0


class Player:
    """An engine over a recording, and a way to wait for what it shows."""

    def __init__(self, engine: Engine, source: ReplaySource) -> None:
        self.engine, self.source = engine, source
        self.shown = engine.snapshot
        self._changed = threading.Condition()
        engine.subscribe(self._look)

    def until(self, done: Callable[[Snapshot], bool]) -> Snapshot:
        with self._changed:
            assert self._changed.wait_for(lambda: done(self.shown), LIMIT_S), self.shown.replay
            return self.shown

    def _look(self, snapshot: Snapshot) -> None:
        with self._changed:
            self.shown = snapshot
            self._changed.notify_all()


@contextmanager
def playing(path: Path = RECORDING, speed: float = 1.0, *, paused: bool = True) -> Iterator[Player]:
    source = ReplaySource(path, speed, hold=True)
    source.pause(paused)
    engine = Engine(source)
    player = Player(engine, source)
    engine.start()
    try:
        yield player
    finally:
        engine.stop()
        assert engine.ended.is_set()


def fold(path: Path, t: float) -> Snapshot:
    """What a straight play without any control shows at ``t``."""
    engine = Engine(ReplaySource(path, speed=0))
    found: list[Snapshot] = []
    engine.subscribe(lambda snapshot: found.append(snapshot) if snapshot.t <= t else None)
    engine.run_here()
    return found[-1]


def test_as_fast_as_it_can_be_read_it_ends() -> None:
    engine = Engine(ReplaySource(RECORDING, speed=0))
    engine.run_here()
    assert [change.state for change in engine.snapshot.verdicts].count("stopped") >= 1


def test_after_the_end_that_came_at_once_a_way_back_is_no_way_to_the_end() -> None:
    """--speed 0: at once to the end; what is looked for from there stays long enough to be seen."""
    with playing(speed=0.0, paused=False) as player:
        player.until(lambda s: "at the end" in s.replay)
        player.source.seek(20.0)
        there = player.until(lambda s: s.t >= 19.5 and "at the end" not in s.replay)
        assert "0x" not in there.replay
        player.source.pause(True)
        player.until(lambda s: "paused" in s.replay)


def test_seek_on_and_back_shows_the_same() -> None:
    with playing() as player:
        player.source.seek(60.0)
        there = player.until(lambda s: s.t >= 59.5)
        player.source.seek(20.0)
        player.until(lambda s: 19.5 <= s.t < 21.0)
        player.source.seek(60.0)
        again = player.until(lambda s: s.t >= 59.5)
        assert again == there
        straight = fold(RECORDING, there.t)
        assert (straight.verdict, straight.verdicts) == (there.verdict, there.verdicts)


def test_the_log_text_goes_back_too() -> None:
    with playing() as player:
        player.source.seek(80.0)
        player.until(lambda s: s.t >= 79.5)
        long = player.engine.log_text.size
        player.source.seek(15.0)
        player.until(lambda s: 14.5 <= s.t < 16.0)
        assert 0 < player.engine.log_text.size < long


def test_paused_nothing_moves_and_a_step_takes_one_event() -> None:
    with playing() as player:
        player.source.seek(30.0)
        before = player.until(lambda s: s.t >= 29.5 and "paused" in s.replay)
        player.source.step()
        after = player.until(lambda s: s.t > before.t)
        assert after.t - before.t < 1.5
        assert "paused" in after.replay


def test_speed_is_told_and_changed() -> None:
    with playing() as player:
        for _ in range(3):
            player.source.faster()
        player.until(lambda s: "10x" in s.replay)
        player.source.faster(False)
        player.until(lambda s: " 5x" in s.replay)


def test_it_moves_by_itself_and_faster_than_it_was() -> None:
    with playing(speed=200.0, paused=False) as player:
        player.until(lambda s: s.t > 20.0)


def test_to_the_next_change_and_back() -> None:
    changes = [change.t for change in fold(RECORDING, 1e9).verdicts]
    with playing() as player:
        player.until(lambda s: "paused" in s.replay)
        player.source.to_next_change()
        player.until(lambda s: len(s.verdicts) >= 1)
        player.source.to_next_change()
        second = player.until(lambda s: len(s.verdicts) >= 2)
        player.source.to_next_change()
        third = player.until(lambda s: len(s.verdicts) >= 3)
        assert [second.verdicts[-1].t, third.verdicts[-1].t] == changes[1:3]
        player.engine.to_previous_change()
        back = player.until(lambda s: s.t < third.t - 0.5 and len(s.verdicts) >= 2)
        assert back.verdicts[-1].t == changes[1]


def test_at_the_end_it_stays_and_can_go_back() -> None:
    with playing(speed=0.0, paused=False) as player:
        end = player.until(lambda s: "at the end" in s.replay)
        player.source.pause(True)
        player.source.seek_by(-10.0)
        back = player.until(lambda s: s.t < end.t - 5.0)
        assert "at the end" not in back.replay
        player.source.seek_by(1000.0)
        player.until(lambda s: "at the end" in s.replay)


def test_a_stop_ends_a_paused_replay() -> None:
    with playing() as player:
        player.until(lambda s: "paused" in s.replay)


@pytest.mark.parametrize("path", sorted(RECORDING.parent.glob("*.jsonl.gz"))[::6], ids=lambda path: path.stem)
def test_the_verdicts_are_the_same_each_time(path: Path) -> None:
    assert fold(path, 1e9).verdicts == fold(path, 1e9).verdicts
