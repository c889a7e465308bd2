"""What a live watch has said, its recording says again: the same verdicts at the same times, to the millisecond."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon import demo
from sgmon.collect.source import LiveSource
from sgmon.model import Snapshot, Verdict
from sgmon.recording import codec
from sgmon.recording.replay import ReplaySource
from sgmon.recording.writer import Recorder
from sgmon.settings import Settings
from sgmon.watch.engine import Engine
from sgmon.watch.persistence import SETTLE_S, Persistence

MOST_S = 200.0


def _watch(pid: int, path: Path, over: Callable[[Snapshot], bool], persistence: bool = False) -> Engine:
    """Watch and record until ``over``."""
    source = LiveSource(Settings(pid=pid))
    kept = Persistence(source.epoch, simulated=True) if persistence else None
    engine = Engine(source, recorder=Recorder(path, source.epoch), persistence=kept)

    def look(snapshot: Snapshot) -> None:
        if over(snapshot) or snapshot.t > MOST_S:
            source.stop()

    engine.subscribe(look)
    engine.run_here()
    engine.stop()
    assert over(engine.snapshot)
    return engine


def _told(snapshot: Snapshot) -> list[tuple[float, str, str]]:
    return [(round(change.t, 3), change.state, change.headline) for change in snapshot.verdicts]


def _rounded(snapshot: Snapshot) -> Verdict:
    """A recording keeps milliseconds."""
    verdict = snapshot.verdict
    return replace(verdict, since_t=round(verdict.since_t, 3), pending_t=round(verdict.pending_t, 3))


@pytest.mark.parametrize(("scenario", "state"), [("healthy", "ready")])
def test_a_recording_replays_to_the_same_verdicts(scenario: str, state: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with demo.start(scenario, tp=2, speed=8.0) as server:
        live = _watch(server.pid, path, lambda snapshot: snapshot.verdict.state == state)
    again = Engine(ReplaySource(path, speed=0))
    again.run_here()
    assert _told(again.snapshot) == _told(live.snapshot)
    assert _rounded(again.snapshot) == _rounded(live.snapshot)
    assert again.snapshot.log.lines == live.snapshot.log.lines


def test_the_flight_of_a_crash_tells_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def saved_again(snapshot: Snapshot) -> bool:
        """The crash is so long ago that its flight was written a second time, with what came after it."""
        crashed = next((change for change in snapshot.verdicts if change.state == "crashed"), None)
        return crashed is not None and snapshot.t > crashed.t + SETTLE_S + 2.0

    with demo.start("crash", tp=4, speed=8.0) as server:
        live = _watch(server.pid, tmp_path / "a.jsonl.gz", saved_again, persistence=True)
    (saved,) = live.snapshot.saved
    again = Engine(ReplaySource(Path(saved), speed=0))
    again.run_here()
    assert again.snapshot.verdict.state == "crashed"
    assert again.snapshot.verdict.odd_ranks == live.snapshot.verdict.odd_ranks == ("TP2",)
    assert codec.read_header(Path(saved)).note == live.snapshot.verdict.headline
