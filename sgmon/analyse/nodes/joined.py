"""The rendezvous seen from all nodes: who waits, who has not joined, and why as far as its own events tell."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis.by_design import NODE_LATE_S
from sgmon.analyse.nodes.whole import Whole, link_step, named, on_node, silence
from sgmon.model import Evidence, NextStep, NodeView, Rank, RankState, Verdict
from sgmon.units import plural, rank_list

#: rule of a node's own verdict: all its ranks wait at the rendezvous, nothing nearer is missing
WAITS = "node-missing"
#: phases before a rank is at the rendezvous
_BEFORE = frozenset({"", "launch", "spawn"})
#: own states that are told as they are, with the waiting ranks behind them
_BAD = frozenset({"suspect", "stalled", "will-fail", "waiting-by-design", "slow"})


def not_joined(whole: Whole) -> Verdict | None:
    """Ranks of a node wait at the rendezvous: for whom. None: nobody waits there."""
    waiting = [view for view in whole.heard if view.verdict.rule == WAITS]
    if not waiting:
        return None
    others = [view for view in whole.views if view not in waiting]
    unheard = [view for view in others if not view.heard]
    absent = [view for view in others if view.heard and view.server is None]
    behind = [view for view in others if view.heard and view.server is not None and _is_before(view)]
    if absent:
        return _absent(whole, waiting, absent)
    if behind:
        return _behind(whole, waiting, behind)
    if unheard:
        return _unheard(whole, waiting, unheard)
    if others:
        return None  # they have come further: this node's reading is old
    return _unwatched(whole, waiting) or _none_meets(whole, waiting)


def _is_before(view: NodeView) -> bool:
    return view.snapshot.phase in _BEFORE or any(rank.importing for rank in view.snapshot.ranks)


def _waiters(whole: Whole, waiting: list[NodeView]) -> str:
    count = sum(len(_live(view)) for view in waiting)
    return f"{plural(count, 'rank')} on {named(waiting)} {'waits' if count == 1 else 'wait'}"


def _live(view: NodeView) -> list[Rank]:
    return [rank for rank in view.snapshot.ranks if rank.state is not RankState.GONE]


def _since(waiting: list[NodeView]) -> float:
    return min(view.verdict.since_t for view in waiting)


def _is_late(whole: Whole, waiting: list[NodeView]) -> bool:
    return whole.t - _since(waiting) >= NODE_LATE_S or any(view.verdict.state == "stalled" for view in waiting)


def _verdict(
    whole: Whole, waiting: list[NodeView], culprits: list[NodeView], headline: str, state: str = ""
) -> Verdict:
    """The waiting node's own verdict, with what is known of the nodes that it waits for."""
    own = waiting[0].verdict
    facts = (Evidence("node", f"{view.name}: {view.verdict.headline}") for view in culprits[:2] if view.heard)
    return replace(
        own,
        state=state or ("stalled" if _is_late(whole, waiting) else "waiting-by-design"),
        headline=headline,
        odd_ranks=tuple(rank.name for view in culprits for rank in _live(view) if rank.name),
        nodes=tuple(view.name for view in culprits),
        evidence=(*facts, *own.evidence),
    )


def _absent(whole: Whole, waiting: list[NodeView], absent: list[NodeView]) -> Verdict:
    words = f"{named(absent)}: no server runs there yet; {_waiters(whole, waiting)}"
    step = NextStep(f"Start the server on {absent[0].name}, or look why it has not started")
    return replace(_verdict(whole, waiting, absent, words), next=(step, *waiting[0].verdict.next))


def _behind(whole: Whole, waiting: list[NodeView], behind: list[NodeView]) -> Verdict:
    """The node runs, and its ranks are not there yet: what it does is the news."""
    first = max(behind, key=lambda view: view.verdict.state in _BAD)
    names = [rank.name for view in behind for rank in _live(view) if rank.name]
    have = "has" if len(names) == 1 or (not names and len(behind) == 1) else "have"
    who = f"{rank_list(names)} {have} not joined" if names else f"{have} not joined"
    words = f"{named(behind)}: {who} ({first.verdict.headline}); {_waiters(whole, waiting)}"
    own = first.verdict
    if own.state not in _BAD:
        state = "stalled" if own.state == "unknown" and _is_late(whole, waiting) else "progressing"
        return replace(_verdict(whole, waiting, behind, words, state), confidence=0.9, rule="node-behind")
    return replace(
        on_node(own, first),
        headline=words,
        nodes=tuple(view.name for view in behind),
        evidence=(*own.evidence[:3], *waiting[0].verdict.evidence[1:2]),
    )


def _unheard(whole: Whole, waiting: list[NodeView], unheard: list[NodeView]) -> Verdict:
    first = unheard[0]
    words = f"{first.name}: {silence(whole, first)}, so that nobody knows why it has not joined"
    if len(unheard) > 1:
        words = f"{named(unheard)}: no word, so that nobody knows why they have not joined"
    found = _verdict(whole, waiting, unheard, f"{words}; {_waiters(whole, waiting)}")
    return replace(found, next=(link_step(first), *found.next))


def _unwatched(whole: Whole, waiting: list[NodeView]) -> Verdict | None:
    """The server has more nodes than are watched."""
    args = waiting[0].server.args if waiting[0].server is not None else None
    if args is None or args.nnodes <= len(whole.views):
        return None
    ranks = {view.server.args.node_rank for view in whole.views if view.server is not None}
    missing = [number for number in range(args.nnodes) if number not in ranks]
    which = f"node {missing[0]}" if len(missing) == 1 else plural(len(missing), "node")
    words = f"{which} of {args.nnodes}, which is not watched, has not joined; {_waiters(whole, waiting)}"
    step = NextStep("Watch it too: name every node of the server", "sgmon --host NODE --host NODE")
    return replace(_verdict(whole, waiting, [], words), next=(step, *waiting[0].verdict.next))


def _none_meets(whole: Whole, waiting: list[NodeView]) -> Verdict:
    """Every node waits for the others: they do not reach each other, or do not mean the same address."""
    addresses = [view.server.args.dist_init_addr for view in waiting if view.server is not None]
    told = sorted({address for address in addresses if address})
    why = f"they name different addresses: {' and '.join(told[:3])}" if len(told) > 1 else "the path between them"
    at = f" at {told[0]}" if len(told) == 1 else ""
    words = f"{named(waiting)} wait for each other at the rendezvous{at}, and do not meet ({why})"
    state = "stalled" if len(told) > 1 or _is_late(whole, waiting) else ""
    return replace(_verdict(whole, waiting, [], words, state), nodes=tuple(view.name for view in waiting))
