"""The verdict: the rules in order, then hysteresis. First match wins."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from sgmon.analyse.diagnosis import other_nodes
from sgmon.analyse.diagnosis.absent import absent
from sgmon.analyse.diagnosis.by_design import foreign_build_lock, other_node, own_rules
from sgmon.analyse.diagnosis.causes import with_cause
from sgmon.analyse.diagnosis.context import Context, context_of
from sgmon.analyse.diagnosis.crash import crashed, restarted_facts
from sgmon.analyse.diagnosis.driver import driver_facts
from sgmon.analyse.diagnosis.ended import shut_down
from sgmon.analyse.diagnosis.engine_alone import engine_alone
from sgmon.analyse.diagnosis.facts import missing_signals
from sgmon.analyse.diagnosis.foreseen import with_forecast
from sgmon.analyse.diagnosis.holders import explained_by_holders, foreign_holders, look_step
from sgmon.analyse.diagnosis.log_only import log_only
from sgmon.analyse.diagnosis.no_server import no_server
from sgmon.analyse.diagnosis.not_known_yet import not_known_yet
from sgmon.analyse.diagnosis.orphans import orphan_facts, other_servers
from sgmon.analyse.diagnosis.progress import cpu_alone, progress
from sgmon.analyse.diagnosis.ready import ready
from sgmon.analyse.diagnosis.stalled import busy_for_nothing, stale_lock, stalled, storage
from sgmon.analyse.diagnosis.stopped import stopped
from sgmon.analyse.diagnosis.whose_log import earlier_start, shared_log
from sgmon.model import Snapshot, Verdict

Rule = Callable[[Context], Verdict | None]


def still_spinning(context: Context) -> Verdict | None:
    """It was found to spin, nothing but CPU time has moved since, and the GPU was not seen often enough of late
    to say so again (readings were missed): then it still spins."""
    old = context.snapshot.verdict
    if old.state not in ("suspect", "stalled") or not any(e.signal == "gpu" for e in old.evidence):
        return None
    unseen = any(v.clock is None or v.clock.gpu_util_min is None for v in context.ranks)
    return old if unseen and context.non_cpu_activity_t <= old.since_t + 1.0 else None


#: the order is the procedure: what is certain first, what needs time last
RULES: tuple[Rule, ...] = (
    earlier_start,
    shared_log,
    shut_down,
    crashed,
    absent,
    stopped,
    engine_alone,
    ready,
    own_rules,
    foreign_build_lock,
    other_node,
    still_spinning,
    storage,
    stale_lock,
    stalled,
)

#: changes into these are shown at once; others must hold for a moment, so that the line does not flap
_AT_ONCE = frozenset({"crashed", "ended", "stopped", "ready", "stalled", "suspect", "will-fail"})
HOLD_S = 2.0
#: states in which a phase that is a mere guess is left out at once
_ENDS_A_PHASE = frozenset({"crashed", "ended", "stopped", "unknown"})
#: states that are left at once: what a process that runs again has been does not linger
_OVER_AT_ONCE = frozenset({"waiting", "stopped"})
#: facts beyond this many are of no use; other servers on this machine are named only below it
MOST_EVIDENCE = 5


def diagnose(snapshot: Snapshot) -> Verdict:
    """The verdict of this moment; ``snapshot.verdict`` is the previous one."""
    if snapshot.server is None:
        return settle(snapshot, log_only(snapshot) or no_server(snapshot))
    context = context_of(snapshot)
    judged = _judge(context)
    if judged is snapshot.verdict:  # no new word: what was added to it stands in it
        return settle(snapshot, judged)
    if context.guessed_long or (context.guessed and judged.state in _ENDS_A_PHASE):
        judged = replace(judged, phase="")
    found = with_forecast(context, with_cause(snapshot, judged))
    holders = foreign_holders(snapshot) if found.state != "ready" else ()
    orphans = orphan_facts(snapshot, holders) if found.state != "ready" else ()
    explains = explained_by_holders(snapshot, found, holders)
    if explains:
        found = replace(
            found, headline=f"{found.headline}; {holders[0].text}", next=(*look_step(holders), *found.next)
        )
    added = (*restarted_facts(snapshot), *driver_facts(snapshot), *holders, *orphans)
    own = found.evidence[: max(2, MOST_EVIDENCE - len(added))] if added else found.evidence
    evidence = (*own[:1], *added, *own[1:]) if explains else (*own, *added)
    if len(evidence) < MOST_EVIDENCE:
        evidence = (*evidence, *other_servers(snapshot))
    further = (*found.next, *other_nodes.steps(snapshot, found.state))
    found = replace(found, evidence=evidence[:MOST_EVIDENCE], next=further)
    return settle(snapshot, replace(found, missing=missing_signals(context)))


def _judge(context: Context) -> Verdict:
    for rule in RULES:
        verdict = rule(context)
        if verdict is not None:
            return verdict
    unknown = not_known_yet(context)
    if unknown is not None:
        return unknown
    alone = cpu_alone(context)
    return progress(context) if alone is None else busy_for_nothing(context, alone)


def settle(snapshot: Snapshot, found: Verdict) -> Verdict:
    """Keep since_t over equal verdicts; let a softer state wait until it has held."""
    old = snapshot.verdict
    if (found.state, found.rule) == (old.state, old.rule):
        return replace(found, since_t=old.since_t if old.since_t else found.since_t or snapshot.t)
    if found.state == old.state:
        return replace(found, since_t=found.since_t or old.since_t or snapshot.t)
    if (old.state, found.state) == ("stalled", "suspect") and found.since_t <= old.since_t + 1.0:
        return old  # nothing has moved since: a hole in the readings is no doubt
    fresh = replace(found, since_t=found.since_t or snapshot.t)
    if found.state in _AT_ONCE or not old.rule or old.state in _OVER_AT_ONCE:
        return fresh
    if old.pending != found.state:
        return replace(old, pending=found.state, pending_t=snapshot.t)
    if snapshot.t - old.pending_t < HOLD_S:
        return old
    return fresh
