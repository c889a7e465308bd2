"""The processes of a server that have ended, with the time in which each did."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model import ActivityClock, Role, Snapshot

#: a process may need this long to end after a signal (a GPU's memory, many threads): of a parent and a child that end
#: within it, neither is the first by time alone
TEARDOWN_S = 2.0
#: seconds between two exits below which their order says nothing about what killed whom
APART_S = 0.5
#: one reading shows a process alive and another gone: that is an order where the reading took no longer
LOOK_S = 0.3


class Death(Struct, frozen=True):
    """An end: not before ``earliest``, not after ``latest`` (watch seconds). Equal times: its pidfd has told.

    told_signal: the signal that the launcher's log or the kernel's names, for an end whose status no reading has.
    """

    clock: ActivityClock
    earliest: float
    latest: float
    told_signal: int | None = None

    @property
    def pid(self) -> int:
        return self.clock.pid

    @property
    def rank(self) -> str:
        return self.clock.rank

    @property
    def role(self) -> Role:
        return self.clock.role

    @property
    def signal(self) -> int | None:
        if self.clock.exit_signal is None and self.clock.exit_code is None:
            return self.told_signal
        return self.clock.exit_signal

    @property
    def code(self) -> int | None:
        return self.clock.exit_code

    @property
    def violent(self) -> bool:
        """By a signal, or with a status that is not 0."""
        return bool(self.signal) or bool(self.code)

    @property
    def will_be(self) -> Role:
        """Its role, or the one that it was to have after its imports."""
        importing = self.role is Role.IMPORTING and self.clock.becomes is not Role.OTHER
        return self.clock.becomes if importing else self.role

    @property
    def is_launcher(self) -> bool:
        return self.role is Role.LAUNCHER

    @property
    def will_be_worker(self) -> bool:
        """A rank, or a process that was to become one."""
        return self.role is Role.WORKER or self.clock.becomes is Role.WORKER

    def before(self, other: Death) -> bool:
        """Whether this one is known to have ended before the other."""
        if self.clock.exit_t is not None and other.clock.exit_t is not None:
            return other.earliest - self.latest >= APART_S
        return self.latest <= other.earliest + LOOK_S


def deaths(snapshot: Snapshot) -> tuple[Death, ...]:
    """Every watched process that has ended, or is ending by the OOM killer, in birth order."""
    struck = oom_places(snapshot)
    return tuple(
        _death(clock, snapshot.t, 9 if clock.pid in struck else None)
        for clock in snapshot.clocks
        if clock.gone_t is not None or (clock.state in ("Z", "X") and clock.pid in struck)
    )


def oom_places(snapshot: Snapshot) -> dict[int, int]:
    """Pid -> its place among those that the kernel's log says its OOM killer has killed."""
    lines = snapshot.kernel.lines if snapshot.kernel is not None else ()
    return {line.pid: place for place, line in enumerate(line for line in lines if line.what == "oom")}


def _death(clock: ActivityClock, t: float, told_signal: int | None) -> Death:
    gone_t = clock.gone_t if clock.gone_t is not None else t
    if clock.exit_t is not None:
        return Death(clock, clock.exit_t, clock.exit_t, told_signal)
    seen_t = clock.alive_t if clock.alive_t is not None else clock.first_t
    return Death(clock, min(seen_t if seen_t is not None else 0.0, gone_t), gone_t, told_signal)
