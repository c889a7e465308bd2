"""Which node crashed first: the others fall with it. Two clocks are compared only as well as they were measured."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.deaths.order import Order, order_of
from sgmon.analyse.deaths.sayings import LOG_LATE_S
from sgmon.analyse.nodes.whole import Whole, named, on_node, silence
from sgmon.model import Evidence, NodeView, Verdict
from sgmon.units import duration

#: error of a clock that was not measured
UNKNOWN_ERROR_S = 1.0
#: one end is the cause of another on another node only where it was this much earlier: see ``deaths.death.APART_S``
APART_S = 0.5


class Fall(Struct, frozen=True):
    """The crash of one node: not before earliest, not after latest, in watch seconds, the clock's error included.

    victim: it lost a peer that is on another node. error_s: of its clock.
    """

    view: NodeView
    earliest: float
    latest: float
    error_s: float
    victim: bool


def falls(views: Sequence[NodeView]) -> list[Fall]:
    """Of all crashed nodes, the earliest first."""
    return sorted((_fall(view) for view in views), key=lambda fall: (fall.latest, fall.view.name))


def crashed(whole: Whole) -> Verdict | None:
    """A node has crashed: which one was the first, as far as the clocks tell."""
    views = whole.in_state("crashed")
    every = falls(views)
    if not every:
        return None
    own = [fall for fall in every if not fall.victim] or every
    first = own[0]
    contenders = [fall for fall in own if not _before(first, fall)]
    if all(fall.victim for fall in every):
        return _lost_elsewhere(whole, first, every)
    if len(contenders) == 1:
        return _first(whole, first, every)
    return _open(contenders, every)


def _before(one: Fall, other: Fall) -> bool:
    return one is not other and one.latest + APART_S <= other.earliest


def _fall(view: NodeView) -> Fall:
    reading = view.reading
    error_s = UNKNOWN_ERROR_S if reading is None or reading.offset_error_s is None else reading.offset_error_s
    order, verdict = order_of(view.snapshot), view.verdict
    earliest, latest = _times(order, verdict)
    victim = order is not None and order.lost is not None and order.first is None
    return Fall(view, earliest - error_s, latest + error_s, error_s, victim)


def _times(order: Order | None, verdict: Verdict) -> tuple[float, float]:
    if order is None:
        return verdict.since_t - LOG_LATE_S, verdict.since_t
    if order.first is not None:
        return order.first.earliest, order.first.latest
    some = order.candidates or order.taken
    if not some:
        return verdict.since_t - LOG_LATE_S, verdict.since_t
    return min(death.earliest for death in some), min(death.latest for death in some)


def _first(whole: Whole, first: Fall, every: Sequence[Fall]) -> Verdict:
    rest = [fall for fall in every if fall is not first]
    verdict = on_node(first.view.verdict, first.view)
    if not rest:
        return verdict
    later = min(fall.latest - fall.error_s for fall in rest) - (first.latest - first.error_s)
    fact = Evidence("node", f"{named([f.view for f in rest])} fell {duration(max(0.0, later))} later, with it")
    return replace(verdict, evidence=(*verdict.evidence[:3], fact, *verdict.evidence[3:]))


def _open(contenders: Sequence[Fall], every: Sequence[Fall]) -> Verdict:
    """Several nodes fell too close together to tell which was the first."""
    views = [fall.view for fall in contenders]
    span = max(f.latest - f.error_s for f in contenders) - min(f.latest - f.error_s for f in contenders)
    error = max(fall.error_s for fall in contenders)
    first = contenders[0].view.verdict
    sure = " clocks not measured" if any(f.error_s >= UNKNOWN_ERROR_S for f in contenders) else ""
    return replace(
        first,
        headline=f"{named(views)} crashed within {duration(max(0.1, span))}; which first is not known",
        confidence=min(f.view.verdict.confidence for f in contenders),
        rule="nodes-crashed",
        odd_ranks=tuple(rank for f in contenders for rank in f.view.verdict.odd_ranks),
        nodes=tuple(view.name for view in views),
        evidence=(
            *(Evidence("node", f"{view.name}: {view.verdict.headline}") for view in views[:3]),
            Evidence("clock", f"the clocks of these nodes are known to {duration(error)} at best{sure}"),
        ),
        next=first.next,
    )


def _lost_elsewhere(whole: Whole, first: Fall, every: Sequence[Fall]) -> Verdict:
    """All that crashed lost a peer: the first is on a node that is not heard, or not watched."""
    verdict = on_node(first.view.verdict, first.view)
    silent = whole.silent
    if not silent:
        return verdict
    words = (
        f"{named([f.view for f in every])} lost a rank of another node; {silent[0].name}: {silence(whole, silent[0])}"
    )
    return replace(verdict, headline=words, nodes=tuple(view.name for view in silent))
