"""vLLM's own waits that are meant: for engine cores of other nodes, for the head node, for Ray's resources.

A rule returns a verdict without phase and log: the caller adds both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sgmon.model import Evidence, NextStep, Role, Verdict
from sgmon.servers.vllm.ranks import first_replica, local_replicas
from sgmon.units import rank_list

if TYPE_CHECKING:
    from sgmon.analyse.diagnosis.context import Context

#: a peer that has not come for this long is no longer a start that is merely later
PEER_LATE_S = 300.0
#: "Waiting for READY message from DP Coordinator" comes every 10 s until every engine core has subscribed
BEAT_S = 15.0
#: seconds without a sign of activity after which a node without an API server is taken to wait for its head
HEAD_S = 8.0
_JOINED = frozenset({"dp_ready", "http_start", "http_up", "ready"})


def engines_elsewhere(context: Context) -> Verdict | None:
    """The engine cores here are complete and wait for others elsewhere, for ever: heartbeats are no progress."""
    args = context.args
    missing = _elsewhere(context)
    beats = [m for m in context.snapshot.log.milestones if m.name == "dp_wait"]
    if not missing or not beats or not _engines_complete(context):
        return None
    if _JOINED & {m.name for m in context.snapshot.log.milestones}:
        return None
    beat_t = context.snapshot.passed_t(beats[-1])
    if beat_t is not None and args.headless and context.t - beat_t > BEAT_S:
        return None  # it has stopped: they have joined
    begin_t = context.first_passed("dp_wait")
    begin_t = context.t if begin_t is None else begin_t
    late = context.t - begin_t >= PEER_LATE_S
    address = dict(args.raw).get("data_parallel_address", "")
    at = f" at {address}" if address else ""
    headline = (
        f"{rank_list(missing)} of {args.dp} engine cores {'has' if len(missing) == 1 else 'have'} not joined{at}"
    )
    return Verdict(
        "stalled" if late else "waiting-by-design",
        f"{headline}; those of this node wait for {'it' if len(missing) == 1 else 'them'}" if late else headline,
        since_t=begin_t,
        confidence=0.9,
        rule="engine-missing",
        odd_ranks=missing,
        evidence=(
            Evidence("args", f"started with --data-parallel-size {args.dp}, {local_replicas(args)} of them here"),
            Evidence("log", "every engine core of this node has said that it is complete, and waits for READY"),
        ),
        next=(NextStep("See whether the other nodes run and reach this address", "sgmon status   # there"),),
    )


def head_unanswered(context: Context) -> Verdict | None:
    """A headless node of replicas: its engine cores ask the head for their configuration, and give up after 5 min."""
    if not asks_head(context) or any(rank.active(context.t) for rank in context.ranks):
        return None
    begin_t = min(rank.activity_t for rank in context.ranks)
    if context.t - begin_t < HEAD_S:
        return None
    address = dict(context.args.raw).get("data_parallel_address", "")
    return Verdict(
        "waiting-by-design",
        f"the head node has not answered{f' at {address}' if address else ''}; the engine cores here wait for it",
        since_t=begin_t,
        confidence=0.8,
        rule="head-missing",
        odd_ranks=("node 0",),
        evidence=(Evidence("args", "started with --headless: the head node configures its engine cores"),),
        next=(NextStep("See whether the head node runs and reaches this one", "sgmon status   # there"),),
    )


def asks_head(context: Context) -> bool:
    """Whether engine cores of a headless node are there, and none has been configured."""
    engines = bool(context.ranks) and all(rank.role in (Role.ENGINE, Role.WORKER) for rank in context.ranks)
    told = {m.name for m in context.snapshot.log.milestones} & {"engine_begin", "dist_init_begin", "load_begin"}
    return context.args.headless and context.args.dp > 1 and engines and not told


def headless(context: Context) -> Verdict | None:
    """A node without an API server prints no ready line. Complete engine cores are ready; ranks of a group of several
    nodes wait for calls of the head."""
    args = context.args
    if not args.headless:
        return None
    node = f"node {args.node_rank}" if args.node_rank else "this node"
    if args.dp > 1 and _engines_complete(context):
        return Verdict(
            "ready",
            f"{node}: its engine cores are ready; whether the server is, only the head node can tell",
            confidence=0.85,
            rule="ready-node",
            evidence=(Evidence("args", "started with --headless: it has no port and no ready line"),),
        )
    done = {m.name for m in context.snapshot.log.milestones}
    idle = all(not rank.active(context.t) and rank.process.state == "S" for rank in context.ranks)
    if not context.ranks or not idle or context.quiet_s < HEAD_S or not {"load_end", "profile_end"} & done:
        return None
    return Verdict(
        "waiting-by-design",
        f"{node}: its ranks have loaded and wait for the head node, which alone can tell whether it is ready",
        since_t=context.activity_t,
        confidence=0.7,
        rule="headless",
        evidence=(Evidence("args", f"started with --headless --node-rank {args.node_rank}"),),
        next=(NextStep("Watch the start on the head node", "sgmon   # there"),),
    )


def _elsewhere(context: Context) -> tuple[str, ...]:
    """The replicas whose engine cores run on other nodes."""
    first, count = first_replica(context.args), local_replicas(context.args)
    return tuple(f"DP{n}" for n in range(context.args.dp) if not first <= n < first + count)


def _engines_complete(context: Context) -> bool:
    """Whether each engine core of this node has said so."""
    said = [m for m in context.snapshot.log.milestones if m.name == "engine_ready"]
    return len(said) >= local_replicas(context.args)


RULES: tuple[Callable[[Context], Verdict | None], ...] = (engines_elsewhere, head_unanswered, headless)
