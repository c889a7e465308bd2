from __future__ import annotations

import errno

from sgmon.collect.probes.gaps import Gaps
from sgmon.collect.probes.schedule import Schedule
from sgmon.proc.guard import HungError


class Times:
    """A clock, and work that takes ``cost`` seconds."""

    def __init__(self) -> None:
        self.now_t = 0.0
        self.cost = 0.0
        self.ran: list[float] = []

    def now(self) -> float:
        return self.now_t

    def work(self) -> None:
        self.ran.append(self.now_t)
        self.now_t += self.cost


def run(times: Times, every_s: float, seconds: int, spread: int = 0) -> list[float]:
    schedule = Schedule(times.now)
    for second in range(seconds):
        times.now_t = max(times.now_t, float(second))
        schedule.run("key", every_s, times.work, spread)
    return times.ran


def test_at_once_and_then_each_five_seconds():
    assert run(Times(), 5.0, 16) == [0.0, 5.0, 10.0, 15.0]


def test_a_longer_interval_makes_all_reads_rarer():
    times = Times()
    schedule = Schedule(times.now, interval_s=2.0)
    for second in range(0, 31, 2):
        times.now_t = float(second)
        schedule.run("key", 5.0, times.work)
    assert times.ran == [0.0, 10.0, 20.0, 30.0]


def test_slow_work_is_stretched_but_not_for_ever():
    times = Times()
    times.cost = 0.06
    assert run(times, 5.0, 40) == [0.0, 15.0, 30.0]
    times = Times()
    times.cost = 3.0
    assert run(times, 5.0, 90) == [0.0, 40.0, 80.0]


def test_the_second_time_is_spread():
    assert {run(Times(), 5.0, 9, spread=pid)[1] for pid in range(1, 9)} >= {3.0, 4.0, 5.0}


def test_forget():
    times = Times()
    schedule = Schedule(times.now)
    schedule.run((7, "maps"), 5.0, times.work)
    schedule.run((8, "maps"), 5.0, times.work)
    schedule.forget(7)
    assert schedule.run((7, "maps"), 5.0, times.work)
    assert not schedule.run((8, "maps"), 5.0, times.work)


def test_gaps(tmp_path):
    gaps = Gaps(str(tmp_path), 5)

    def fail(err: Exception):
        def work() -> int:
            raise err

        return work

    assert gaps.read("io", lambda: 3) == 3 and gaps.all() == ()
    assert gaps.read("io", fail(ProcessLookupError(errno.ESRCH, "x"))) is None and gaps.all() == ()
    assert gaps.read("io", fail(FileNotFoundError(errno.ENOENT, "x"))) is None and gaps.all() == ()
    (tmp_path / "5").mkdir()
    gaps.read("stack", fail(FileNotFoundError(errno.ENOENT, "x")))
    gaps.read("io", fail(PermissionError(errno.EACCES, "x")))
    gaps.read("maps", fail(HungError("x")))
    whys = {gap.signal: gap.why for gap in gaps.all()}
    assert "kernel does not tell" in whys["stack"] and "EACCES" in whys["io"] and "locked" in whys["maps"]
    gaps.read("io", lambda: 3)
    assert {gap.signal for gap in gaps.all()} == {"stack", "maps"}


def test_in_a_calm_reads_are_rarer_and_at_its_end_those_are_due_that_were_left_out():
    times, calm = Times(), [True]
    schedule = Schedule(times.now, is_calm=lambda: calm[0])
    for second in range(30):
        times.now_t = float(second)
        schedule.run("dear", 5.0, times.work, calm_times=4.0)
    assert times.ran == [0.0, 20.0]
    calm[0] = False
    times.now_t = 30.0
    assert schedule.run("dear", 5.0, times.work, calm_times=4.0)
    assert not schedule.run("dear", 5.0, times.work, calm_times=4.0)


def test_what_no_calm_makes_rarer():
    times = Times()
    schedule = Schedule(times.now, is_calm=lambda: True)
    for second in range(6):
        times.now_t = float(second)
        schedule.run("limits", 2.0, times.work)
    assert times.ran == [0.0, 2.0, 4.0]
