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
from sgmon.analyse.diagnosis.facts import log_fact, missing_signals, quiet_fact
from sgmon.analyse.diagnosis.foreseen import with_forecast
from sgmon.analyse.diagnosis.grammar import phrase
from sgmon.analyse.diagnosis.holders import explained_by_holders, foreign_holders, look_step
from sgmon.analyse.diagnosis.log_only import log_only
from sgmon.analyse.diagnosis.orphans import orphan_facts, other_servers
from sgmon.analyse.diagnosis.progress import cpu_alone, progress
from sgmon.analyse.diagnosis.ready import ready
from sgmon.analyse.diagnosis.stalled import busy_for_nothing, stale_lock, stalled, storage
from sgmon.analyse.diagnosis.stopped import stopped
from sgmon.analyse.diagnosis.whose_log import earlier_start, shared_log
from sgmon.model import Candidate, Evidence, Missing, NextStep, Snapshot, Verdict
from sgmon.servers import names, registry
from sgmon.units import lasting, plural

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
    ready,
    engine_alone,
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
#: states in which a phase that is a mere guess is left out
_ENDS_A_PHASE = frozenset({"crashed", "ended", "stopped", "unknown"})
#: what is known of the processes tells nothing of now when it is so old
UNREAD_S = 30.0
#: states that are left at once: what a process that runs again has been does not linger
_OVER_AT_ONCE = frozenset({"waiting", "stopped"})
#: facts beyond this many are of no use; other servers on this machine are named only below it
MOST_EVIDENCE = 5
#: the name under which `sgmon run` says that what it started has ended
COMMAND = "command"


def diagnose(snapshot: Snapshot) -> Verdict:
    """The verdict of this moment; ``snapshot.verdict`` is the previous one."""
    if snapshot.server is None:
        return settle(snapshot, log_only(snapshot) or _no_server(snapshot))
    context = context_of(snapshot)
    judged = _judge(context)
    if judged is snapshot.verdict:  # no new word: what was added to it stands in it
        return settle(snapshot, judged)
    if context.guessed and judged.state in _ENDS_A_PHASE:
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
    if not context.ranks:
        return _unseen(context)
    if _first_look(context):
        return _unjudged(context)
    unread_s = _unread_s(context)
    if unread_s is not None:
        return _unread(context, unread_s)
    if _unmoved(context):
        return _came_late(context)
    alone = cpu_alone(context)
    return progress(context) if alone is None else busy_for_nothing(context, alone)


def _which(one: Candidate) -> str:
    """ "vLLM, pid 733"."""
    family = f"{registry.get(one.family).label}, " if one.family else ""
    return f"{family}pid {one.pid}"


def _no_server(snapshot: Snapshot) -> Verdict:
    ended = next((p for p in snapshot.probes if p.name == COMMAND and p.error), None)
    if ended is not None:
        return Verdict(
            "crashed",
            ended.error,
            phase="launch",
            confidence=1.0,
            rule="command-ended",
            next=(NextStep("Read what it said", ended.remedy),),
        )
    if snapshot.candidates and snapshot.asked_port is not None:
        seen = ", ".join(f"{one.port or 'unknown'} ({_which(one)})" for one in snapshot.candidates)
        return Verdict(
            "waiting",
            f"no server has port {snapshot.asked_port}; ports seen: {seen}",
            confidence=1.0,
            rule="no-such-port",
            next=(NextStep("Watch one of them", f"sgmon --pid {snapshot.candidates[0].pid}"),),
        )
    failed = next((p for p in snapshot.probes if p.name == "server" and p.error), None)
    gaps = () if failed is None else (Missing("server", failed.error, failed.remedy),)
    if failed is not None and not snapshot.looked_for:
        headline = f"whether a server runs is not known: {failed.error}"
        step = (NextStep(failed.remedy),) if failed.remedy else ()
        return Verdict("unknown", headline, confidence=1.0, rule="no-look", missing=gaps, next=step)
    looked = (Evidence("proc", f"looked for {snapshot.looked_for}"),) if snapshot.looked_for else ()
    held = foreign_holders(snapshot)
    left = orphan_facts(snapshot, held)
    return Verdict(
        "waiting",
        f"no {names.labels()} server yet",
        confidence=1.0,
        rule="no-server",
        evidence=(*driver_facts(snapshot), *held, *left, *looked),
        missing=gaps,
        next=look_step((*held, *left)) or (NextStep("If one runs, see what is hidden from sgmon", "sgmon doctor"),),
    )


def _first_look(context: Context) -> bool:
    """No counter has been seen twice yet: nothing can be said about movement."""
    if context.t - (context.snapshot.server_seen_t or 0.0) > 5.0:
        return False
    clocks = [v.clock for v in context.ranks if v.clock is not None]
    return all(c.demand_percent is None and c.first_t is not None and context.t - c.first_t < 3.0 for c in clocks)


def _silent_before(context: Context) -> bool:
    """The log had been silent for long when the watch began."""
    began_t = context.snapshot.server_seen_t or 0.0
    log = context.snapshot.log
    return log.last_activity_t is not None and began_t - log.last_activity_t >= context.limits().suspect_s


def _unmoved(context: Context) -> bool:
    """Nothing has moved since sgmon came, into a start that was silent already: no ground to call it alive.
    When that lasts, the stall rules apply."""
    began_t = context.snapshot.server_seen_t or 0.0
    moved = context.helpers_t > began_t or any(
        mark.t > v.clock.first_t
        for v in context.ranks
        if v.clock and v.clock.first_t is not None
        for mark in v.clock.marks
    )
    return not moved and _silent_before(context)


def _came_late(context: Context) -> Verdict:
    looked = lasting(context.t - (context.snapshot.server_seen_t or 0.0))
    return Verdict(
        "unknown",
        f"{context.phase_words}: hung or slow is not known yet; nothing has moved in the {looked} that sgmon looks",
        phase=context.phase,
        confidence=0.9,
        rule="came-late",
        evidence=(log_fact(context), *(quiet_fact(context, v) for v in context.ranks[:2])),
        next=(NextStep("Look for longer than a start may be quiet", "sgmon status --seconds 40"),),
    )


def _unjudged(context: Context) -> Verdict:
    """One look at counters says nothing about movement. Live compilers do, and so does what is younger than any
    silence: the log's last line, or the server itself."""
    compiling = [v for v in context.ranks if v.process.compilers]
    if compiling:
        first = compiling[0].process.compilers
        what = f"{plural(len(first), 'live compiler')} below {compiling[0].label}: {first[0].name} {first[0].what}"
        return Verdict(
            "progressing",
            f"{context.phase_words}: {phrase(compiling, 'compiles')} kernels",
            phase=context.phase,
            confidence=0.7,
            rule="first-look",
            evidence=(Evidence("compiler", what.rstrip(), compiling[0].name), log_fact(context)),
        )
    limit_s = context.limits().suspect_s
    young = (_age_s(context) or limit_s) < limit_s
    fresh = context.log_activity_t != 0.0 and context.t - context.log_activity_t < limit_s
    stage = "unknown phase" if context.guessed else context.phase_words
    return Verdict(
        "progressing" if fresh or young else "unknown",
        f"{stage}: first look, not known yet whether anything moves",
        phase=context.phase,
        confidence=0.4,
        rule="first-look",
        evidence=(*(quiet_fact(context, v) for v in context.ranks[:2]), log_fact(context)),
    )


def _unread_s(context: Context) -> float | None:
    """For how long the processes could not be read while the log was silent, too; None: not for long."""
    probe, read_t = context.snapshot.probe("procs"), context.read_t
    if probe is None or read_t is None or not (probe.error or probe.in_flight_since_t is not None):
        return None
    unread_s = min(context.t - read_t, context.t - context.log_activity_t)
    return unread_s if unread_s >= UNREAD_S else None


def _unread(context: Context, unread_s: float) -> Verdict:
    unread = f"the processes have not been read for {lasting(unread_s)}"
    return Verdict(
        "unknown",
        f"{context.phase_words}: hung or slow is not known; {unread}",
        phase=context.phase,
        confidence=0.9,
        rule="unread",
        evidence=(log_fact(context),),
        next=(NextStep("See what sgmon may read here", "sgmon doctor"),),
    )


def _age_s(context: Context) -> float | None:
    """Seconds since the server was started; None: not known."""
    server = context.snapshot.server
    if server is None or server.started_epoch is None:
        return None
    return context.snapshot.epoch + context.t - server.started_epoch


def _unseen(context: Context) -> Verdict:
    """A server is named, but none of its processes was read: the first second, or no permission."""
    snapshot = context.snapshot
    age = context.t - (snapshot.server_seen_t or 0.0)
    if age < 10.0 or context.t - context.log_activity_t < 30.0:
        return Verdict(
            "progressing", "the server is starting", phase=context.phase, confidence=0.4, rule="first-look"
        )
    return Verdict(
        "unknown",
        "none of the server's processes can be read: neither hung nor slow can be said",
        phase=context.phase,
        confidence=0.9,
        rule="blind",
        evidence=(Evidence("proc", "no process of the server's tree is visible"),),
        next=(NextStep("See what sgmon may read here", "sgmon doctor"),),
    )


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
