"""A recording of a real start, made by sgmon 0.1.0 and kept: what newer versions must open and read the same way."""

from __future__ import annotations

from pathlib import Path

from sgmon.history import from_snapshot
from sgmon.model import Snapshot
from sgmon.recording import codec
from sgmon.recording.replay import ReplaySource
from sgmon.watch.engine import Engine

RECORDING = Path(__file__).parent / "data" / "real-start-tp2.jsonl.gz"


def _end() -> Snapshot:
    engine = Engine(ReplaySource(RECORDING, speed=0))
    engine.run_here()
    return engine.snapshot


def test_it_opens() -> None:
    header, events = codec.read(RECORDING)
    assert (header.sgmon_recording, header.ticks) == (1, True)
    kinds = {event.kind for event in events}
    assert kinds == {"server", "start", "baseline", "procs", "gpu", "log", "port", "tick"}


def test_the_verdict_is_the_same() -> None:
    end = _end()
    states = [change.state for change in end.verdicts]
    assert states[0] == "waiting"
    assert states[-1] == "ready"
    assert not {"suspect", "stalled", "stopped", "crashed"} & set(states)
    ready = next(change for change in end.verdicts if change.state == "ready")
    assert abs(ready.t - 80.0) < 3.0


def test_it_makes_a_finished_start() -> None:
    end = _end()
    run = from_snapshot.start_of(end, from_snapshot.outcome_of(end))
    key = run.key
    assert (run.outcome, key.model, key.version, key.gpu) == ("ready", "models/tiny", "0.5.23", "CPU")
    assert (key.parallel, key.host, key.mount, key.caches) == ("tp2 dp1 pp1 n1", "host-a", "ext4", "warm")
    assert run.duration_s is not None and 77 < run.duration_s < 80
    assert [name for name, _ in run.phases][:5] == [
        "launch",
        "spawn",
        "dist_init",
        "weights",
        "kv_cache",
    ]
    ours, theirs = next(
        (ours, theirs) for what, ours, theirs in from_snapshot.compared_with_own(run) if what == "whole engine"
    )
    assert abs(ours - theirs) < 3.0
    assert ("HF_HUB_OFFLINE", "1") in run.env
    assert ("api_key", "********") in run.args


def test_nothing_in_it_tells_where_it_was_made() -> None:
    text = "\n".join(repr(event) for event in codec.read(RECORDING)[1])
    for word in ("/root/", "/opt/"):
        assert word not in text
