"""What is usual at this point of a start, from finished starts on this machine. Pure.

``words``: for the evidence and the progress line. ``eta_s``: seconds until ready, None while there is no number.
"""

from __future__ import annotations

from sgmon.model import Eta, Milestone, Snapshot, Usual
from sgmon.servers.phases import PhaseTable
from sgmon.units import duration, lasting, plural

#: how much later than usual is late; a cold start may well take three times as long as the warm ones before it
_LATE = 1.5
_LATE_WIDE = 4.0
#: starts below this number change no limit: "nine of ten" of fewer says nothing
ENOUGH = 5
#: a log that was there when the watch began is read within this time
_READ_S = 5.0
#: states of a start that is under way: of no other one is it known when it will be ready
UNDER_WAY = frozenset({"progressing", "slow", "suspect", "unknown"})


def ready_after_s(snapshot: Snapshot) -> float | None:
    """Seconds from the start of the server's process to its ready line; None: not known.

    That is so without a ready line, and for a line without a date that was there when the watch began.
    """
    ready = next((one for one in snapshot.log.milestones if one.name == "ready"), None)
    if ready is None or snapshot.began_t is None:
        return None
    seen_t, passed_t = ready.seen_t, snapshot.passed_t(ready)
    was_there = seen_t is None or seen_t - (snapshot.server_seen_t or 0.0) < _READ_S
    if passed_t is None or (was_there and passed_t == seen_t):
        return None
    return round(max(0.0, passed_t - snapshot.began_t), 2)


def eta(snapshot: Snapshot) -> Eta:
    """How long this start takes, in whole seconds, against finished ones."""
    base = snapshot.baseline
    remains_s = eta_s(snapshot)
    return Eta(
        remains_s=None if remains_s is None else float(round(remains_s)),
        took_s=ready_after_s(snapshot) if snapshot.verdict.state == "ready" else None,
        usual_s=None if base is None else base.ready_median_s,
        count=0 if base is None else base.count,
    )


def eta_s(snapshot: Snapshot) -> float | None:
    """Seconds until ready, from how far the start is and what usually remains from there."""
    base, began = snapshot.baseline, snapshot.began_t
    if base is None or base.ready_median_s is None or began is None or snapshot.verdict.state not in UNDER_WAY:
        return None
    passed = _last_passed(snapshot)
    if passed is None:
        remains = base.ready_median_s - (snapshot.t - began)
    else:
        usual, milestone = passed
        remains = base.ready_median_s - usual.median_s - (snapshot.t - _passed_t(snapshot, milestone))
    return remains if remains > 0 else None


def until_phase_s(snapshot: Snapshot, phases: PhaseTable, phase: str) -> float | None:
    """Seconds until the end of ``phase``, as starts like this one took; None: no number, or later than usual."""
    base, began = snapshot.baseline, snapshot.began_t
    if base is None or began is None or not base.phases or not phase:
        return None
    to_end = sum(one.median_s for one in base.phases if 0 <= phases.order(one.phase) <= phases.order(phase))
    left = to_end - (snapshot.t - began)
    return left if left > 0 else None


def next_usual(snapshot: Snapshot) -> Usual | None:
    """The milestone that usually comes next, after the furthest that was passed."""
    base = snapshot.baseline
    if base is None:
        return None
    seen = {milestone.name for milestone in snapshot.log.milestones}
    passed = _last_passed(snapshot)
    after_s = passed[0].median_s if passed is not None else -1.0
    return next((one for one in base.milestones if one.name not in seen and one.median_s >= after_s), None)


def words(snapshot: Snapshot) -> str:
    """ "kv alloc is usually line 233 after 8m30s; this log is at line 217 after 10m00s (10 starts: same model)"."""
    base, began, coming = snapshot.baseline, snapshot.began_t, next_usual(snapshot)
    if base is None or began is None or coming is None:
        return ""
    here = f"this log is at line {snapshot.log.run_lines} after {lasting(snapshot.t - began)}"
    source = f"{plural(base.count, 'start')}: {base.like}"
    name = coming.name.replace("_100", " at 100 %").replace("_", " ")
    return f"{name} is usually line {coming.line} after {duration(coming.median_s)}; {here} ({source})"


def is_late(snapshot: Snapshot) -> bool:
    """Whether the next milestone is overdue beyond what nine of ten starts took (all of them, where they are few)."""
    base, began, coming = snapshot.baseline, snapshot.began_t, next_usual(snapshot)
    if base is None or began is None or coming is None:
        return False
    took = snapshot.t - began
    factor = _LATE if base.narrow else _LATE_WIDE
    return took > max(factor * coming.median_s, coming.p90_s + 30.0)


def late_words(snapshot: Snapshot) -> str:
    """ "later than nine of ten starts like this one here"; "" when it is not late."""
    if not is_late(snapshot) or snapshot.baseline is None:
        return ""
    count = snapshot.baseline.count
    than = "nine of ten starts" if count >= 10 else f"all {count} starts" if count > 1 else "the one start"
    return f"later than {than} on this machine that {'is' if count == 1 else 'are'} like this one"


def quiet_s(snapshot: Snapshot) -> float | None:
    """How long nine of ten starts of the same kind were without any sign of activity, at most; None: too few of them,
    or only starts of another kind (other caches, another version or host)."""
    base = snapshot.baseline
    return base.longest_quiet_s if base is not None and base.narrow and base.count >= ENOUGH else None


def _last_passed(snapshot: Snapshot) -> tuple[Usual, Milestone] | None:
    """The furthest milestone of the baseline that this start has passed."""
    base = snapshot.baseline
    assert base is not None
    known = {one.name: one for one in base.milestones}
    first: dict[str, Milestone] = {}
    for milestone in snapshot.log.milestones:
        first.setdefault(milestone.name, milestone)
    passed = [(known[name], milestone) for name, milestone in first.items() if name in known]
    return max(passed, key=lambda pair: (pair[0].median_s, pair[0].line), default=None)


def _passed_t(snapshot: Snapshot, milestone: Milestone) -> float:
    t = snapshot.passed_t(milestone)
    return snapshot.t if t is None else t
