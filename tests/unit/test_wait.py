"""When ``sgmon wait`` is over."""

from __future__ import annotations

from sgmon.commands.wait import Waiting
from sgmon.model import Server, Snapshot, Verdict


def seen(t: float, state: str) -> Snapshot:
    return Snapshot(t=t, server=Server(1, 1), verdict=Verdict(state, ""))


def test_a_crash_is_told_a_second_later_with_its_cause() -> None:
    """A rank is seen gone before the lines are read that say why: the first headline would be "killed by SIGKILL"."""
    waiting = Waiting(60, 30)
    assert not waiting.look(seen(10.0, "crashed"))
    assert not waiting.look(seen(10.5, "crashed"))
    assert waiting.look(seen(11.0, "crashed")) and waiting.code == 5


def test_the_end_of_the_time_is_told_from_other_ends() -> None:
    waiting = Waiting(60, 30)
    assert waiting.look(seen(60, "progressing")) and waiting.code == 4 and waiting.is_late
    crashed = Waiting(60, 30)
    assert not crashed.look(seen(58, "crashed"))
    assert crashed.look(seen(59, "crashed")) and not crashed.is_late


def test_ready_at_once_and_a_stall_when_it_has_held() -> None:
    waiting = Waiting(60, 30)
    assert not waiting.look(seen(5, "stalled"))
    assert not waiting.look(seen(20, "progressing"))
    assert not waiting.look(seen(25, "stopped"))
    assert waiting.look(seen(26, "ready")) and waiting.code == 0


def test_a_start_that_will_fail_ends_the_wait_only_when_asked() -> None:
    doomed = Snapshot(t=1.0, verdict=Verdict("will-fail", "the port is held"))
    patient, hasty = Waiting(60, 30), Waiting(60, 30, fail_fast=True)
    assert not patient.look(doomed) and not hasty.look(doomed), "the other one may be about to end"
    later = Snapshot(t=7.0, verdict=doomed.verdict)
    assert not patient.look(later) and hasty.look(later)
    assert hasty.code == 3
