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
    """An end: not before ``earliest``, not after ``latest`` (watch seconds). Equal times: its pidfd has told."""

    clock: ActivityClock
    earliest: float
    latest: float

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
        return self.clock.exit_signal

    @property
    def code(self) -> int | None:
        return self.clock.exit_code

    @property
    def violent(self) -> bool:
        """By a signal, or with a status that is not 0."""
        return bool(self.signal) or bool(self.code)

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
    """Every watched process that has ended, in birth order."""
    return tuple(_death(clock) for clock in snapshot.clocks if clock.gone_t is not None)


def _death(clock: ActivityClock) -> Death:
    gone_t = clock.gone_t or 0.0
    if clock.exit_t is not None:
        return Death(clock, clock.exit_t, clock.exit_t)
    seen_t = clock.alive_t if clock.alive_t is not None else clock.first_t
    return Death(clock, min(seen_t if seen_t is not None else 0.0, gone_t), gone_t)
