"""The answers for orchestrators: does the start live, has it begun, is it ready? Pure functions of a snapshot."""

from __future__ import annotations

from msgspec import Struct

from sgmon.analyse.diagnosis.usual import ready_after_s
from sgmon.export.shown import safe
from sgmon.model import Snapshot

CHECKS = ("livez", "readyz", "startupz")
#: seconds for which a stalled or stopped verdict must hold before /livez says so: a restart costs minutes
HOLD_S = 60.0
#: seconds without a new snapshot after which sgmon itself is taken for stuck
STUCK_S = 30.0

_HUNG = frozenset({"stalled", "stopped"})
_OVER = frozenset({"crashed", "ended"})
#: nothing is watched, or it is not known what it does
_NO_START = frozenset({"waiting", "unfinished"})


class Answer(Struct, frozen=True):
    """What one check says. ok: HTTP 200, else 503. why: of a check that is not ok.

    elapsed_s: since the server's process began. ready_in_s: until ready, from finished starts; ready_after_s: how
    long it took. moved_s: since anything of the server last showed activity. culprit: ranks that hold the start up.
    age_s: of what all this is read from. None: not known.
    """

    check: str
    ok: bool
    why: str
    state: str
    phase: str
    detail: str
    since_s: float
    rule: str = ""
    elapsed_s: float | None = None
    ready_in_s: float | None = None
    ready_after_s: float | None = None
    moved_s: float | None = None
    culprit: tuple[str, ...] = ()
    pid: int | None = None
    age_s: float = 0.0


def live(snapshot: Snapshot, hold_s: float = HOLD_S) -> str:
    """Why the server should be restarted; "" when it should not: a slow start, an unknown one, a server that is gone
    for reasons of its own (no server) are none.

    A failing /health of a server that was ready is left to a probe of /health itself.
    """
    verdict = snapshot.verdict
    held_s = snapshot.t - verdict.since_t
    if verdict.state in _OVER:
        return verdict.state
    if verdict.state in _HUNG and held_s >= hold_s:
        return f"{verdict.state} for {held_s:.0f} s (limit {hold_s:.0f} s)"
    return ""


def answer(check: str, snapshot: Snapshot, *, age_s: float = 0.0, hold_s: float = HOLD_S) -> Answer:
    """What ``check`` ("livez", "readyz" or "startupz") says. age_s: seconds since the snapshot was taken.

    sgmon being stuck is no reason to restart a server (livez stays ok) and none to send it requests.
    """
    verdict = snapshot.verdict
    stuck = f"sgmon has read nothing for {age_s:.0f} s" if age_s > STUCK_S else ""
    dead = "" if stuck else live(snapshot, hold_s)
    if check == "livez":
        why = dead
    elif check == "startupz":
        begun = verdict.state not in _NO_START and (snapshot.server is not None or snapshot.log_only)
        why = dead or stuck or ("" if begun else "no server has been seen yet")
    else:
        why = dead or stuck or ("" if verdict.state == "ready" else f"not ready: {verdict.state}")
    began_t, moved_t = snapshot.began_t, last_activity_t(snapshot)
    return Answer(
        check=check,
        ok=not why,
        why=why,
        state=verdict.state,
        phase=verdict.phase or snapshot.phase,
        detail=safe(verdict.headline),
        since_s=round(max(0.0, snapshot.t - verdict.since_t), 1),
        rule=verdict.rule,
        elapsed_s=None if began_t is None else round(max(0.0, snapshot.t - began_t), 1),
        ready_in_s=snapshot.eta.remains_s,
        ready_after_s=ready_after_s(snapshot),
        moved_s=None if moved_t is None else round(max(0.0, snapshot.t - moved_t), 1),
        culprit=verdict.odd_ranks,
        pid=None if snapshot.server is None else snapshot.server.pid,
        age_s=round(age_s, 1),
    )


def last_activity_t(snapshot: Snapshot) -> float | None:
    """When anything of the server last showed activity, in watch seconds; None: it never did."""
    seen = [rank.last_mark.t for rank in snapshot.ranks if rank.last_mark is not None]
    if snapshot.log.last_activity_t is not None:
        seen.append(snapshot.log.last_activity_t)
    return max(seen, default=None)
