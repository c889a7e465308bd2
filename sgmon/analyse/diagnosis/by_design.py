"""Waits that are meant: those of the family, a node that is not there yet, another program's build lock."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import log_fact, wait_fact
from sgmon.analyse.diagnosis.grammar import names, phrase
from sgmon.analyse.foreseen import will_fail
from sgmon.model import Evidence, NextStep, Rank, Verdict, WaitKind
from sgmon.text import quoted
from sgmon.units import address

#: a node that has not come for this long is no longer a start that is merely later
NODE_LATE_S = 300.0
#: a name that nobody brings is not waited for longer than this
NAME_LATE_S = 60.0
#: a name with addresses of one family only is refused once, and found at the same attempt
SAID_TIMES = 2
#: waits for something nearer than another node
_NEARER = frozenset({WaitKind.STORAGE, WaitKind.LOCK, WaitKind.STALE_LOCK, WaitKind.DNS, WaitKind.LOG_READER})
#: milestones that no rank reaches before every node is there
_JOINED = frozenset(
    {"gloo_connected", "nccl_comm", "nccl_init_complete", "mq_connect", "first_collective", "dist_init_end"}
)


def own_rules(context: Context) -> Verdict | None:
    """The waits that only this family of servers has; phase and log are added to what its rules say."""
    for rule in context.family.rules:
        verdict = rule(context)
        if verdict is not None:
            return replace(verdict, phase=context.phase, evidence=(log_fact(context), *verdict.evidence))
    return None


def other_node(context: Context) -> Verdict | None:
    """Several nodes, all local ranks at the rendezvous, nothing local missing: a node has not joined."""
    args = context.args
    if (
        context.phase != "dist_init"
        or not context.ranks
        or _JOINED & {m.name for m in context.snapshot.log.milestones}
    ):
        return None  # when the nodes have met, what is slow is the path between them
    nowhere = unresolved(context)
    if nowhere is not None:
        return _name_unknown(context, *nowhere)
    if args.nnodes < 2:
        return None
    if any(v.importing or v.active(context.t) for v in context.ranks):
        return None
    if any(v.wait.kind in _NEARER for v in context.ranks):
        return None  # it waits for something nearer
    begin_t = context.first_passed("dist_init_begin")
    began = context.activity_t if begin_t is None else begin_t
    who = "node 0" if args.node_rank else "node 1" if args.nnodes == 2 else "a node"
    place = f" at {args.dist_init_addr}" if args.dist_init_addr else ""
    late = context.t - began >= NODE_LATE_S
    verb = "has not answered" if args.node_rank else "has not joined"
    headline = f"{who} of {args.nnodes} {verb}{place}"
    waiting = [v for v in context.ranks if v.wait.text] or list(context.ranks)
    evidence = [
        Evidence("args", f"started with --nnodes {args.nnodes} --node-rank {args.node_rank}"),
        wait_fact(context, waiting[0]),
        log_fact(context),
    ]
    return Verdict(
        "stalled" if late else "waiting-by-design",
        f"{headline}; {names(list(context.ranks))} here wait for it" if late else headline,
        phase=context.phase,
        since_t=began,
        confidence=0.85,
        rule="node-missing",
        odd_ranks=(who,),
        evidence=tuple(evidence),
        next=(
            NextStep("See whether that node runs and reaches this address", _reach(args.dist_init_addr)),
            NextStep("Take the stacks of all ranks, merged", "sgmon stacks", key="D"),
        ),
    )


def unresolved(context: Context) -> tuple[str, Evidence] | None:
    """The name that the ranks cannot resolve, with the resolver's words, and where that was read; None: none known.

    The log says it at each attempt, and counts from the second on; else the look at the arguments tells."""
    said = context.snapshot.log.unresolved
    if said is not None and said.times >= SAID_TIMES:
        words = f"{address(said.host, said.port)} cannot be resolved: {said.words}"
        return words, Evidence("log", f"line {said.line}, said {said.times} times: no address of {said.host}")
    facts = context.snapshot.preflight
    for one in facts.resolved if facts is not None and not facts.away else ():
        if one.what == "rendezvous" and one.error == "unknown":
            words = f"{context.args.dist_init_addr} cannot be resolved"
            return f"{words}: {one.words}" if one.words else words, Evidence(
                "net", f"the resolver knows no {one.name}"
            )
    return None


def _name_unknown(context: Context, words: str, fact: Evidence) -> Verdict:
    """Expected only on a node that may be earlier than node 0, whose name it is. Everywhere else nothing can come;
    where the look at the arguments has foretold that, the forecast takes the place of this verdict."""
    args, begin_t = context.args, context.first_passed("dist_init_begin")
    began = context.activity_t if begin_t is None else begin_t
    may_come = args.nnodes > 1 and args.node_rank > 0
    foretold = any(one.rule == "unresolved" for one in will_fail(context.snapshot))
    late = context.t - began >= (NODE_LATE_S if may_come else NAME_LATE_S)
    host = fact.text.rsplit(" ", 1)[-1]
    return Verdict(
        "stalled" if late else "waiting-by-design" if may_come or foretold else "suspect",
        f"the rendezvous {words}; {phrase(list(context.ranks), 'waits')} for it",
        phase=context.phase,
        since_t=began,
        confidence=0.9,
        rule="name-unresolved",
        odd_ranks=(),
        evidence=(fact, _given(context), wait_fact(context, context.ranks[0]), log_fact(context)),
        next=(NextStep("Name an address that this machine can resolve", f"getent hosts {quoted(host)}"),),
    )


def _given(context: Context) -> Evidence:
    """How the meeting place was given."""
    args = context.args
    nodes = f"--nnodes {args.nnodes} --node-rank {args.node_rank}"
    where = args.dist_init_addr or "no address: one of the environment (MASTER_ADDR) is used"
    return Evidence("args", f"started with {nodes}, rendezvous {where}")


def foreign_build_lock(context: Context) -> Verdict | None:
    """All that do not move wait for a lock whose holder is alive and not of this server."""
    tree = {p.pid for p in context.snapshot.procs.processes}
    held = [v for v in context.ranks if v.wait.kind is WaitKind.LOCK and v.wait.holder and v.wait.holder not in tree]
    if not held or any(v.active(context.t) and v not in held for v in context.ranks):
        return None
    first: Rank = held[0]
    return Verdict(
        "waiting-by-design",
        phrase(held, f"waits for a build lock that another program (pid {first.wait.holder}) holds"),
        phase=context.phase,
        since_t=min(v.activity_t for v in held),
        confidence=0.85,
        rule="build-lock",
        odd_ranks=(),
        evidence=(wait_fact(context, first), log_fact(context)),
        next=(NextStep("See what holds it", f"ps -o pid,user,etime,args -p {first.wait.holder}"),),
    )


def _reach(place: str) -> str:
    host, _, port = place.rpartition(":")
    return f"nc -vz {quoted(host)} {quoted(port)}" if host and port else ""
