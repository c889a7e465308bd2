"""The order of death: each ended process is tried as the first; what the evidence excludes is left out.

The laws: nothing ends before its cause; a rank that complains of a lost peer is a victim, and a rank was lost
before it; a child may be killed by a parent that ends, cleans up or dies (PR_SET_PDEATHSIG), and by nobody else of
the server; a launcher that ends itself says why before; an end that a line names was there before that line.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from sgmon.analyse.deaths.death import TEARDOWN_S, Death, deaths, oom_places
from sgmon.analyse.deaths.sayings import LOG_LATE_S, Sayings, sayings, with_told_signals
from sgmon.analyse.family import family_of
from sgmon.model import ActivityClock, Complaint, LogError, Role, Snapshot
from sgmon.servers.family import Ends

#: until so long after the last end, a line or a reading that tells the order may still come
SETTLE_S = 2.5
#: a server that answers so long after the end of a process goes on without it
ANSWERS_S = 10.0
_SIGABRT, _SIGKILL = 6, 9


class Order(Struct, frozen=True):
    """first: the process that died first; None: not known, or no process of this node, or ``cause`` tells all that is
    known. candidates: one of them was the first. taken: the others. cause: the failure by which it died, from the
    log. lost: a rank lost a peer that is none of these. open: evidence of the order may still come. restarted: ends
    that are none of the server's: a manager starts another process, or the server goes on.
    """

    first: Death | None = None
    candidates: tuple[Death, ...] = ()
    taken: tuple[Death, ...] = ()
    cause: LogError | None = None
    lost: Complaint | None = None
    open: bool = False
    restarted: tuple[Death, ...] = ()

    @property
    def only(self) -> Death | None:
        """The process that died first, or the only one that may have."""
        return self.first or (self.candidates[0] if len(self.candidates) == 1 else None)

    @property
    def span_s(self) -> float:
        """Seconds in which the candidates ended."""
        if not self.candidates:
            return 0.0
        return max(death.latest for death in self.candidates) - min(death.earliest for death in self.candidates)


def order_of(snapshot: Snapshot) -> Order | None:
    """None: no process has ended that the server needs."""
    ends = family_of(snapshot).ends
    every = with_told_signals(snapshot, deaths(snapshot))
    back = tuple(d for d in every if _is_restarted(snapshot, ends, d) or _went_on(snapshot, ends, d))
    dead = tuple(death for death in every if death not in back)
    if not dead:
        return Order(restarted=back) if back else None
    return _Case(snapshot, dead, ends, back).order()


def oom_killed(snapshot: Snapshot, death: Death) -> bool:
    """Whether the kernel's OOM killer is known to have killed it: its log names the pid, or the process had a control
    group for itself, whose count has moved."""
    if death.pid in oom_places(snapshot):
        return True
    return death.signal == _SIGKILL and bool(death.clock.oom) and not death.clock.oom_shared


def _is_restarted(snapshot: Snapshot, ends: Ends, death: Death) -> bool:
    """Its manager, which lived on, starts another one in its place."""
    parent = next((c for c in snapshot.clocks if c.pid == death.clock.ppid), None)
    if parent is None or not _outlived(parent, death) or death.rank or snapshot.server is None:
        return False
    return ends.restarts(death.role, death.clock.becomes, snapshot.server.args)


def _outlived(clock: ActivityClock, death: Death) -> bool:
    """Whether it lives, or lived so much longer that its own end has nothing to do with that one."""
    return clock.gone_t is None or clock.gone_t - death.latest > SETTLE_S + TEARDOWN_S


def _went_on(snapshot: Snapshot, ends: Ends, death: Death) -> bool:
    """The server has gone on without a helper: a later milestone, or it still answers."""
    if death.will_be_worker or death.role in (Role.LAUNCHER, Role.ENGINE, Role.CONTROLLER):
        return False
    if death.will_be in ends.needed:
        return False
    if any(c.role is Role.LAUNCHER and not _outlived(c, death) for c in snapshot.clocks):
        return False
    if any((m.seen_t or 0.0) > death.latest + LOG_LATE_S for m in snapshot.log.milestones):
        return True
    port = snapshot.port
    probe = snapshot.probe("port")
    asked_t = None if probe is None else probe.last_ok_t
    answers = port is not None and port.status == 200 and any(one.ours for one in port.listeners)
    return answers and asked_t is not None and asked_t >= death.latest + ANSWERS_S


class _Case:
    """One crash: its deaths, what the log says, and the family's laws."""

    def __init__(self, snapshot: Snapshot, dead: tuple[Death, ...], ends: Ends, back: tuple[Death, ...]) -> None:
        self.snapshot = snapshot
        self.dead = dead
        self.ends = ends
        self.back = back
        self.said: Sayings = sayings(snapshot, dead)
        self.open = snapshot.t - max(death.latest for death in dead) < SETTLE_S
        self.struck = oom_places(snapshot)
        self.launcher = next((death for death in dead if death.is_launcher), None)
        self.parents = {clock.pid: clock.ppid for clock in snapshot.clocks}
        cause = self.said.cause
        self.failed = None if cause is None else next((d for d in dead if d.rank and d.rank == cause.rank), None)

    def order(self) -> Order:
        possible = [death for death in self.dead if self._may_be_first(death)]
        by_log = self.said.cause is not None and self.failed is None and self._cause_may_be_first()
        if len(possible) + by_log == 1:
            return self._known(possible[0] if possible else None)
        if not possible and not by_log:
            possible = self._independent()
            if len(possible) == 1:
                return self._known(possible[0])
        if by_log and all(not death.signal for death in possible):
            return self._known(None)  # exits with a status are what an exception of nobody's name leads to
        return self._unknown(possible)

    def _known(self, first: Death | None) -> Order:
        cause = self.said.cause
        young = first is not None and self.snapshot.t - first.latest < SETTLE_S
        if first is not None and not cause:
            early = young and not self._tells_enough(first)
            if early or self._is_asked_unheard(first):
                return self._unknown([first])
        if first is not None and first is not self.failed:
            cause = cause if first.pid in self.said.own else None
        taken = tuple(death for death in self.dead if death is not first)
        return Order(first, taken=taken, cause=cause, open=self.open and first is None, restarted=self.back)

    def _tells_enough(self, first: Death) -> bool:
        """Whether it may be named at once: what comes later cannot show it to be a victim."""
        if first.pid in self.said.own or oom_killed(self.snapshot, first):
            return True
        if first.is_launcher and first.signal in self.ends.own_end:
            return self._launcher_reacted() is not None
        return bool(first.signal) and (first.pid in self.said.named or first.signal not in self.ends.kills)

    def _unknown(self, possible: list[Death]) -> Order:
        """With no candidate at all, somebody who is not here was the first."""
        some = tuple(possible)
        taken = tuple(death for death in self.dead if death not in some)
        lost = self.said.lost if not some else None
        return Order(None, some, taken, self.said.cause, lost, self.open, self.back)

    def _may_be_first(self, first: Death) -> bool:
        if first.pid in self.said.victims or not self._ended_of_its_own(first):
            return False
        if self.said.victims and not first.will_be_worker:
            return False
        cause = self.said.cause
        if cause is not None and self.failed is not first and not self._precedes(first, cause.seen_t):
            return False
        return all(self._follows(death, first) for death in self.dead if death is not first)

    def _ended_of_its_own(self, death: Death) -> bool:
        """Its end is no plain reaction: a status of 0, or a launcher that has said what it reacts to."""
        if death is self.failed or death.pid in self.said.named or death.pid in self.struck:
            return True
        if death.is_launcher and (death.signal is None or death.signal in self.ends.own_end):
            return death.violent and self._launcher_reacted() is not True
        unheard = death.will_be_worker and not self.said.readable  # a rank that fails may end with a status of 0
        return death.violent or unheard or not any(other.violent for other in self.dead)

    def _launcher_reacted(self) -> bool | None:
        """Whether its end was its answer to somebody else's. None: not known (no log, or its line may still come)."""
        if self.said.reacted is not None or self.said.lost is not None or self.said.cause is not None:
            return True
        return False if self.said.readable and not self.open else None

    def _cause_may_be_first(self) -> bool:
        """The log's own cause, of a process that it does not name: nobody was killed before it."""
        cause = self.said.cause
        if cause is None:
            return False
        killed = (death for death in self.dead if death.signal and not death.is_launcher)
        return not any(self._precedes(death, cause.seen_t) and not self._may_be_killed(death) for death in killed)

    def _precedes(self, death: Death, seen_t: float | None) -> bool:
        """Whether it had ended before a line that was read at ``seen_t`` was written."""
        return seen_t is not None and death.latest < seen_t - LOG_LATE_S

    def _follows(self, death: Death, first: Death) -> bool:
        """Whether the end of ``death`` can be a consequence of that of ``first``, or the OOM killer's next."""
        if death.pid in self.struck:
            return self.struck.get(first.pid, len(self.struck)) < self.struck[death.pid]
        if death.is_launcher:
            return not self._long_before(death, first) and self._launcher_follows(death)
        if self._before(death, first) and not self._torn_down_with(death, first):
            return False
        if oom_killed(self.snapshot, death) or death.pid in self.said.named:
            return False
        own, earlier = self.said.own.get(death.pid), self.said.own.get(first.pid)
        failed_first = own is not None and (earlier is None or own.line < earlier.line)
        if own is not None and failed_first and not self._precedes(first, own.seen_t):
            return False
        if not death.signal or death.pid in self.said.victims:
            return True
        if death.signal in self.ends.kills:
            return self._may_be_killed(death, first)
        return death.signal == _SIGABRT

    def _is_asked_unheard(self, death: Death) -> bool:
        """Ended by its parent's signal that is not SIGKILL, and no log tells why: a rank that fails may end later."""
        asked = death.signal in self.ends.kills - {_SIGKILL}
        return asked and death.will_be_worker and not self.said.readable

    def _before(self, death: Death, first: Death) -> bool:
        """Whether it ended before the other did, or before the other said why it fails: its end may take its time."""
        if self._is_asked_unheard(death) and first.will_be_worker:
            return False
        failed = self.said.own.get(first.pid)
        return death.before(first) if failed is None else self._precedes(death, failed.seen_t)

    def _launcher_follows(self, launcher: Death) -> bool:
        if not launcher.signal:
            return True
        return launcher.signal in self.ends.own_end and self._launcher_reacted() is not False

    def _torn_down_with(self, death: Death, first: Death) -> bool:
        """A child may be gone before the parent whose end killed it: that one's threads end one by one."""
        killed = death.signal in self.ends.kills and first.pid in self._above(death)
        return killed and first.latest - death.latest <= TEARDOWN_S

    def _may_be_killed(self, death: Death, first: Death | None = None) -> bool:
        """Whether a process above it can have killed it: one that has ended since, or that has begun its clean-up."""
        if death.signal not in self.ends.kills:
            return False
        if self._is_asked_unheard(death):
            return True
        above = self._above(death)
        if any(
            other.pid in above and not self._long_before(death, other, self.ends.clean_up_s) for other in self.dead
        ):
            return True
        if self.open and self._launcher_reacted() is not False and (first is None or not first.is_launcher):
            return True
        reacted = self.said.reacted
        return reacted is not None and not self._precedes(death, reacted.seen_t)

    def _long_before(self, death: Death, other: Death, within_s: float = TEARDOWN_S) -> bool:
        """Before the other by more than an end (TEARDOWN_S) or a clean-up takes."""
        return death.before(other) and other.earliest - death.latest > within_s

    def _independent(self) -> list[Death]:
        """Ends that nothing explains, the first of them where they can be ordered."""
        ends = [
            death
            for death in self.dead
            if death.pid not in self.said.victims
            and self._ended_of_its_own(death)
            and not any(self._follows(death, other) for other in self.dead if other is not death)
        ]
        return [death for death in ends if not any(other.before(death) for other in ends)] or ends

    def _above(self, death: Death) -> set[int]:
        return set(_ancestors(death.pid, self.parents))


def _ancestors(pid: int, parents: dict[int, int | None]) -> Iterable[int]:
    seen = {pid}
    above = parents.get(pid)
    while above is not None and above not in seen:
        seen.add(above)
        yield above
        above = parents.get(above)
