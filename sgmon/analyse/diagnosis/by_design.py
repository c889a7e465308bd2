"""Waits that are meant: those of the family, a node that is not there yet, another program's build lock."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import log_fact, wait_fact
from sgmon.analyse.diagnosis.grammar import names, phrase
from sgmon.model import Evidence, NextStep, Rank, Verdict, WaitKind

#: a node that has not come for this long is no longer a start that is merely later
NODE_LATE_S = 300.0
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
    if args.nnodes < 2 or context.phase != "dist_init" or not context.ranks:
        return None
    if any(v.importing or v.active(context.t) for v in context.ranks):
        return None
    if any(v.wait.kind in _NEARER for v in context.ranks):
        return None  # it waits for something nearer
    if _JOINED & {m.name for m in context.snapshot.log.milestones}:
        return None  # the nodes have met: what is slow now is the path between them
    begin_t = context.first_passed("dist_init_begin")
    began = context.activity_t if begin_t is None else begin_t
    who = "node 0" if args.node_rank else "node 1" if args.nnodes == 2 else "a node"
    address = f" at {args.dist_init_addr}" if args.dist_init_addr else ""
    late = context.t - began >= NODE_LATE_S
    verb = "has not answered" if args.node_rank else "has not joined"
    headline = f"{who} of {args.nnodes} {verb}{address}"
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


def _reach(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"nc -vz {host} {port}" if host and port else ""
