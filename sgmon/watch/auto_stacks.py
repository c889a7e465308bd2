"""When stacks are taken without being asked for: once a suspicion, and, where the log is lost, to know the phase."""

from __future__ import annotations

from sgmon.analyse.phase import bars_alone, log_is_lost
from sgmon.model import Role, Snapshot

#: states at which stacks are taken
ALARMING = frozenset({"suspect", "stalled"})
#: seconds between two requests, whatever happens
APART_S = 60.0
#: while an alarm lasts its stacks are renewed, before the rules call them old
RENEW_S = 240.0
#: a log that has said nothing for this long is lost
LOST_S = 20.0
#: final states
_OVER = frozenset({"ready", "unhealthy", "crashed", "ended", "waiting"})


class AutoStacks:
    """Remembers when stacks were last asked for, and for which server."""

    def __init__(self) -> None:
        self._server: tuple[int, int] | None = None
        self._taken_t: float | None = None

    def due(self, snapshot: Snapshot) -> str:
        """Why stacks should be taken now ("auto: suspect"); "" when they should not. Asking counts as taking."""
        server = snapshot.server
        if server is None:
            return ""
        if self._server != server.key:
            self._server, self._taken_t = server.key, None
        why = self._why(snapshot)
        if not why or (self._taken_t is not None and snapshot.t - self._taken_t < APART_S):
            return ""
        self._taken_t = snapshot.t
        return why

    def _why(self, snapshot: Snapshot) -> str:
        verdict = snapshot.verdict
        if verdict.state in ALARMING:
            taken = self._taken_t
            known = taken is not None and verdict.since_t <= taken and snapshot.t - taken < RENEW_S
            return "" if known else f"auto: {verdict.state}"
        seen = snapshot.server_seen_t or 0.0
        silent = log_is_lost(snapshot) or (bars_alone(snapshot) and snapshot.t - _bars_moved_t(snapshot) >= LOST_S)
        lost = silent and snapshot.t - seen >= LOST_S and verdict.state not in _OVER
        titled = any(p.role == Role.WORKER and p.alive for p in snapshot.procs.processes)
        return "auto: no log" if lost and titled else ""


def _bars_moved_t(snapshot: Snapshot) -> float:
    """When a bar of the log last moved; 0 when none did."""
    return max((bar.moved_t or 0.0 for bar in snapshot.log.bars), default=0.0)
