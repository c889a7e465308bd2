"""One verdict over all nodes. The first rule that matches decides; what is certain comes first.

A silent node decides nothing: its ranks are unknown. It is named where the others wait and nothing that is heard
explains why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sgmon.analyse.diagnosis.other_nodes import WATCH_THEM
from sgmon.analyse.diagnosis.stalled import stalled
from sgmon.analyse.diagnosis.verdict import settle
from sgmon.analyse.nodes.compare import difference_facts
from sgmon.analyse.nodes.deaths import crashed
from sgmon.analyse.nodes.joined import WAITS, not_joined
from sgmon.analyse.nodes.merge import leads
from sgmon.analyse.nodes.whole import Whole, judged, link_step, named, on_node, silence, silent_facts, steps_on
from sgmon.model import Evidence, Missing, NodeView, Rank, Verdict
from sgmon.servers import names, registry
from sgmon.units import plural

Rule = Callable[[Whole], "Verdict | None"]

MOST_EVIDENCE = 6
#: own rules that are about one node and certain whatever the others do
_OWN_RULES = frozenset({"storage", "stale-lock", "build-lock"})
#: a split of ranks on one node alone is believed from here on
_SURE = 0.7
#: states in which a difference of versions or flags may be the reason
_BAD = frozenset({"suspect", "stalled", "crashed", "waiting-by-design", "will-fail", "unhealthy", "unknown"})
#: worst first: states in which a node does not say that it moves, or should not
_WORSE = ("unhealthy", "stalled", "suspect", "unknown")


def judge(whole: Whole) -> Verdict:
    """The verdict of this moment; ``whole.snapshot.verdict`` is the one before."""
    found = next(verdict for rule in RULES if (verdict := rule(whole)) is not None)
    facts = silent_facts(whole)
    if found.state in _BAD:
        facts += difference_facts(whole.snapshot.compared, whole.views)
    own = found.evidence[: max(1, MOST_EVIDENCE - len(facts))]
    further = tuple(step for step in found.next if step.text != WATCH_THEM)  # they are watched
    found = replace(found, evidence=(*own, *facts)[:MOST_EVIDENCE], missing=_missing(whole), next=further)
    return settle(whole.snapshot, found)


def nobody(whole: Whole) -> Verdict | None:
    """No node has a server."""
    if any(view.server is not None for view in whole.views):
        return None
    if not whole.heard:
        first = whole.views[0]
        words = f"{first.name}: {silence(whole, first)}" if len(whole.views) == 1 else "no word from any node"
        return Verdict("waiting", words, confidence=1.0, rule="no-node")
    words = f"no {names.labels()} server yet on {named(whole.heard)}"
    return Verdict("waiting", words, confidence=1.0, rule="no-server")


def ended(whole: Whole) -> Verdict | None:
    """Somebody ended the server; a crash on another node is the cause where it came first."""
    views = whole.in_state("ended")
    if not views or (whole.is_one_server and whole.in_state("crashed")):
        return None
    first = min(views, key=lambda view: (view is not whole.head, view.verdict.since_t))
    if not whole.is_one_server and len(views) < len(whole.views):
        return None
    return on_node(first.verdict, first)


def stopped(whole: Whole) -> Verdict | None:
    """A process of one node is paused: certain, and everybody may wait for it."""
    views = whole.in_state("stopped")
    return _with_waiters(whole, views[0]) if views else None


def ready(whole: Whole) -> Verdict | None:
    """A server on several nodes is ready when its head says so and no node contradicts; of servers of their own,
    all must be."""
    served = [view for view in whole.heard if view.server is not None]
    if not whole.is_one_server:
        if not served or any(view.verdict.state != "ready" for view in served) or len(served) < len(whole.views):
            return None
        facts = tuple(Evidence("node", f"{view.name}: {view.verdict.headline}") for view in served[:3])
        words = f"the servers on {named(served)} are ready"
        return Verdict("ready", words, phase="serving", confidence=0.98, rule="ready", evidence=facts)
    head = whole.head
    if not head.heard or head.verdict.state not in ("ready", "unhealthy") or not leads(head):
        return None
    verdict = on_node(head.verdict, head)
    rest = [view for view in served if view is not head]
    fact = Evidence("node", f"{named(rest)}: {_ready_words(rest)}") if rest else None
    evidence = (*verdict.evidence[:3], *((fact,) if fact is not None else ()), *verdict.evidence[3:])
    sure = min(verdict.confidence, 0.85) if whole.silent else verdict.confidence
    return replace(verdict, evidence=evidence, confidence=sure, nodes=())


def _ready_words(views: Sequence[NodeView]) -> str:
    count = sum(len(view.snapshot.ranks) for view in views)
    done = sum(view.verdict.state == "ready" for view in views)
    return f"{plural(count, 'rank')} alive; {done} of {plural(len(views), 'node')} say that their ranks are ready"


def certain_on_one(whole: Whole) -> Verdict | None:
    """A finding that needs no other node: hung storage, a lock, a closed gate, what will fail."""
    for view in whole.heard:
        own = view.verdict
        is_own = own.rule in _OWN_RULES or (own.state in ("waiting-by-design", "will-fail") and own.rule != WAITS)
        if view.server is not None and is_own:
            return _with_waiters(whole, view)
    return None


def split_on_one(whole: Whole) -> Verdict | None:
    """Ranks of one node wait for another rank of it, whatever the other nodes still do."""
    for view in whole.in_state("stalled"):
        if view.verdict.rule == "peer-missing" and view.verdict.confidence >= _SURE:
            return _with_waiters(whole, view)
    return None


def stalled_together(whole: Whole) -> Verdict | None:
    """No rank of any heard node shows activity: which one do the others wait for?"""
    if not whole.is_one_server or not whole.heard:
        return None
    context = judged(whole)
    found = stalled(context) if context.ranks else None
    if found is None:
        return None
    if found.odd_ranks:
        nodes = tuple(dict.fromkeys(r.node for r in context.ranks if r.name in found.odd_ranks))
        prefix = f"{nodes[0]}: " if len(nodes) == 1 else ""
        return replace(found, headline=prefix + found.headline, nodes=nodes, next=steps_on(found.next, nodes[:1]))
    return _silent_culprit(whole, context.ranks, found) if whole.silent else found


def _silent_culprit(whole: Whole, ranks: Sequence[Rank], found: Verdict) -> Verdict:
    """The ranks that are heard wait, and for whom is not seen: a node that is not heard may work for long."""
    silent = whole.silent
    words = f"{silent[0].name}: {silence(whole, silent[0])}" if len(silent) == 1 else f"{named(silent)}: no word"
    count = len(ranks)
    waits = f"{plural(count, 'rank')} of the other nodes {'waits' if count == 1 else 'wait'}"
    return replace(
        found,
        state="unknown",
        headline=f"{words}; {waits}",
        confidence=round(found.confidence * 0.7, 2),
        rule="node-silent",
        nodes=tuple(view.name for view in silent),
        next=(link_step(silent[0]), *found.next),
    )


def head_silent(whole: Whole) -> Verdict | None:
    """Nothing is heard of any node that has a server."""
    if any(view.server is not None for view in whole.heard):
        return None
    served = [view for view in whole.silent if view.server is not None]
    words = f"{named(served)}: {silence(whole, served[0])}"
    return Verdict(
        "unknown",
        f"{words}; hung or slow is not known",
        phase=whole.snapshot.phase,
        confidence=0.9,
        rule="node-silent",
        nodes=tuple(view.name for view in served),
        next=(link_step(served[0]),),
    )


def worst_server(whole: Whole) -> Verdict | None:
    """Servers of their own: the worst verdict of any. Nobody waits for the other."""
    served = [view for view in whole.heard if view.server is not None]
    bad = [view for view in served if view.verdict.state in _WORSE]
    if whole.is_one_server or not bad:
        return None
    first = min(bad, key=lambda view: (_WORSE.index(view.verdict.state), view.name))
    return on_node(first.verdict, first)


def nobody_moves(whole: Whole) -> Verdict | None:
    """No heard node says that it moves, and the ranks together did not tell more: the worst of what they say."""
    served = [view for view in whole.heard if view.server is not None]
    still = [view for view in served if view.verdict.state in _WORSE and view.verdict.rule != WAITS]
    if not still or len(still) < len(served):
        return None
    first = min(still, key=lambda view: (_WORSE.index(view.verdict.state), view.name))
    ranks = [rank for view in still for rank in view.snapshot.ranks]
    if whole.silent and not first.verdict.odd_ranks:
        return _silent_culprit(whole, ranks, first.verdict)
    return on_node(first.verdict, first)


def furthest_behind(whole: Whole) -> Verdict | None:
    """What the node does that is furthest behind, of those that move."""
    served = [view for view in whole.heard if view.server is not None]
    order = registry.get(whole.snapshot.family).phases.order
    moving = [view for view in served if view.verdict.state not in _WORSE and view.verdict.rule != WAITS] or served

    def place(view: NodeView) -> tuple[int, bool, str]:
        return order(view.snapshot.phase), view.verdict.state != "slow", view.name

    first = min(moving, key=place)
    verdict = on_node(first.verdict, first)
    if verdict.rule == WAITS:  # those that it waits for have come further: its reading is old
        verdict = replace(verdict, state="progressing", rule="moving", odd_ranks=(), confidence=0.6)
    rest = [view for view in whole.views if view is not first]
    ahead = [v for v in served if v is not first and order(v.snapshot.phase) > order(first.snapshot.phase)]
    words = f"; {named(ahead)} {'is' if len(ahead) == 1 else 'are'} further" if ahead else ""
    facts = tuple(Evidence("node", f"{v.name}: {v.verdict.headline}") for v in rest[:2] if v.heard)
    return replace(
        verdict,
        headline=verdict.headline + words,
        evidence=(*verdict.evidence[:3], *facts, *verdict.evidence[3:]),
        nodes=(first.name,) if ahead else (),
    )


def _with_waiters(whole: Whole, view: NodeView) -> Verdict:
    """A node's own finding, and how many ranks of other nodes wait meanwhile."""
    verdict = on_node(view.verdict, view)
    waiting = whole.waiting([view]) if whole.is_one_server else []
    if not waiting:
        return verdict
    nodes = [other for other in whole.heard if any(rank.node == other.name for rank in waiting)]
    verb = "waits" if len(waiting) == 1 else "wait"
    more = f"; {plural(len(waiting), 'rank')} on {named(nodes)} {verb} too"
    return replace(verdict, headline=verdict.headline + more)


def _missing(whole: Whole) -> tuple[Missing, ...]:
    """What could not be seen, once for all nodes that lack the same."""
    lacking: dict[tuple[str, str, str], list[NodeView]] = {}
    for view in whole.heard:
        for gap in view.verdict.missing:
            lacking.setdefault((gap.signal, gap.why, gap.remedy), []).append(view)
    return tuple(Missing(signal, f"{named(views)}: {why}", fix) for (signal, why, fix), views in lacking.items())


#: the order is the procedure
RULES: tuple[Rule, ...] = (
    nobody,
    ended,
    crashed,
    head_silent,
    stopped,
    ready,
    certain_on_one,
    not_joined,
    stalled_together,
    split_on_one,
    worst_server,
    nobody_moves,
    furthest_behind,
)
