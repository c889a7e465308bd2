"""A log without any process of a server on this machine: a verdict, and a full screen, marked "log only"."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from msgspec.structs import replace

from sgmon.analyse.activity.marks import log_marks
from sgmon.analyse.store import Store
from sgmon.collect.logs.stream import Stream
from sgmon.collect.probes.base import Clock
from sgmon.export.json import status_report
from sgmon.model import Event, LogReading, Server, ServerReading, Snapshot
from widgets.phases import rank_rows

STAMP = "[2026-01-02 03:04:0{}{}]"
START = (
    f"{STAMP.format(5, '')} server_args=ServerArgs(model_path='/m', tp_size=2)\n"
    f"{STAMP.format(6, ' TP0')} Load weight begin. avail mem=78.50 GB\n"
    f"{STAMP.format(6, ' TP1')} Load weight begin. avail mem=78.50 GB\n"
)
READY = f"{STAMP.format(9, '')} The server is fired up and ready to roll!\n"
OOM = (
    f"{STAMP.format(9, ' TP1')} Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/sglang/srt/managers/scheduler.py", line 1, in run\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


def watch(*readings: tuple[float, LogReading], until: float = 0.0) -> Snapshot:
    """The snapshot after these readings, with a tick each second."""
    store = Store(1767323045.0)
    store.step(Event(0.0, "server", ServerReading()))
    last = max(until, *(t for t, _ in readings))
    left = list(readings)
    for second in range(int(last) + 2):
        while left and left[0][0] <= second:
            t, reading = left.pop(0)
            store.step(Event(t, "log", reading))
        store.step(Event(second + 0.01, "tick"))
    return store.snapshot


def piece(text: str, kind: str = "command", **more: object) -> LogReading:
    return LogReading(path="kubectl logs -f x", kind=kind, text=text, **more)


def test_a_start_under_way():
    seen = watch((1.0, piece(START)))
    verdict = seen.verdict
    assert (verdict.state, verdict.phase) == ("progressing", "weights")
    assert verdict.headline == "weight load: its log grows (log only)"
    (gap,) = [gap for gap in verdict.missing if gap.signal == "procs"]
    assert "kubectl logs -f x" in gap.why
    assert (seen.family, seen.log.args.tp) == ("sglang", 2)


@pytest.mark.parametrize("kind", ["stdin", "command"])
def test_ready_by_its_own_word(kind):
    verdict = watch((1.0, piece(START + READY, kind))).verdict
    assert (verdict.state, verdict.rule) == ("ready", "log-only-ready")
    assert "log only" in verdict.headline and any("not asked" in e.text for e in verdict.evidence)


def test_the_first_cause_is_named():
    verdict = watch((1.0, piece(START + OOM)), until=8.0).verdict
    assert (verdict.state, verdict.odd_ranks) == ("crashed", ("TP1",))
    assert "memory" in verdict.headline and verdict.headline.endswith("(log only)")


def test_silence_is_suspect_never_stalled():
    states = [watch((1.0, piece(START)), until=t).verdict.state for t in (4.0, 40.0, 4000.0)]
    assert states[0] == "progressing" and states[-1] == "suspect"


def test_the_end_of_the_input_without_a_cause():
    ended = piece("", "stdin", change="ended", note="the input has ended: nothing more will come")
    verdict = watch((1.0, piece(START, "stdin")), (3.0, ended), until=9.0).verdict
    assert (verdict.state, verdict.phase) == ("unknown", "weights")
    assert "has ended" in verdict.headline


def test_text_that_came_at_once_through_a_pipe_is_of_unknown_age():
    """A finished log in a pipe, `kubectl logs -f` of a server that has been silent for an hour: nothing tells."""
    undated = "Load weight begin. avail mem=78.50 GB\n"
    old = watch((1.0, piece(undated, "stdin", undated=True)))
    assert (old.verdict.state, old.verdict.rule) == ("unknown", "log-only-undated")
    assert any("of unknown age" in fact.text for fact in old.verdict.evidence)
    assert old.passed_t(old.log.milestones[0]) is None and rank_rows(old)[0].for_s is None
    assert status_report(old).log.quiet_s is None
    dated = watch((1.0, piece(START, "stdin", undated=True)))
    assert list(log_marks(old.log)) == list(log_marks(dated.log)) == []  # no sign of activity of any rank
    another = replace(dated, server=Server(1, 1, started_epoch=dated.epoch + 86_400))
    assert dated.passed_t(dated.log.milestones[0]) is not None
    assert another.passed_t(another.log.milestones[0]) is None  # its dates are of no clock of this server
    ended = watch((1.0, piece(undated, "stdin", undated=True)), (1.2, piece("", "stdin", change="ended")))
    assert ended.verdict.evidence[0].text.startswith("ended, ")
    grows = watch((1.0, piece(undated, undated=True)), (3.0, piece("more\n")), until=6.0)
    assert grows.verdict.state == "progressing" and status_report(grows).log.quiet_s is not None


def test_the_age_of_text_in_a_pipe():
    """Known by the times of its envelope, and for what comes later."""
    clock = Clock()
    dated = datetime.fromtimestamp(clock.epoch - 3600, timezone.utc).isoformat().replace("+00:00", "Z")
    for text, age_s, undated in ((f"{dated} words\n", 3600.0, False), ("words\n", None, True)):
        stream = Stream("-", "stdin", clock)
        first = stream.reading(text.encode())
        assert first.undated is undated and first.age_s == pytest.approx(age_s, abs=60)
        stream.catch_up()
        later = stream.reading(text.encode())
        assert (later.undated, later.age_s) == (False, None)


def test_a_command_that_fails_says_why():
    failed = piece("", change="ended", note="kubectl logs -f x has ended (exit code 1): pods x not found")
    verdict = watch((0.1, piece("")), (1.0, failed), until=5.0).verdict
    assert verdict.state == "unknown" and "pods x not found" in verdict.headline
    assert watch((0.1, piece(""))).verdict.state == "waiting"


def test_a_file_of_an_earlier_start_is_not_taken_for_one():
    """--log FILE before the server is started: a server on this machine is waited for."""
    old = LogReading(path="/x", kind="file", text=START + OOM, age_s=4000.0)
    assert watch((0.2, old), until=30.0).verdict.rule == "no-server"
    grows = LogReading(path="/x", kind="file", text=READY)
    verdict = watch((0.2, LogReading(path="/x", kind="file", text=START)), (12.0, grows), until=20.0).verdict
    assert verdict.rule == "log-only-ready"
