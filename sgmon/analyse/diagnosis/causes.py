"""The cause book's surest entry, as a part of the verdict. The book never decides the state."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.model import CauseHit, Evidence, NextStep, Snapshot, Verdict
from sgmon.units import percent

#: an entry less sure than this stays on its own page
SURE = 0.8
MOST_FACTS = 5
_STATES = frozenset({"suspect", "stalled", "stopped", "crashed", "waiting-by-design"})


def with_cause(snapshot: Snapshot, verdict: Verdict) -> Verdict:
    """The verdict with the entry as a fact and its command as a step; any earlier one is taken out first."""
    facts = tuple(fact for fact in verdict.evidence if fact.signal != "cause")
    hit = _best(snapshot, verdict)
    if hit is None:
        return verdict if len(facts) == len(verdict.evidence) else replace(verdict, evidence=facts)
    fact = Evidence(
        "cause",
        f"{hit.title} ({percent(hit.confidence * 100)} sure, cause book: {hit.id})",
        hit.ranks[0] if len(hit.ranks) == 1 else "",
        value=hit.id,
    )
    if len(facts) >= MOST_FACTS:  # the first three say who and where, the last one what ends it
        facts = (*facts[: MOST_FACTS - 2], facts[-1])
    known = {step.command for step in verdict.next if step.command} | {step.text for step in verdict.next}
    new = hit.advice and hit.advice not in known and hit.command not in known
    steps = (
        (*verdict.next[:1], NextStep(hit.advice[:1].upper() + hit.advice[1:], hit.command), *verdict.next[1:])
        if new
        else verdict.next
    )
    return replace(verdict, evidence=(*facts, fact), next=steps)


def _best(snapshot: Snapshot, verdict: Verdict) -> CauseHit | None:
    if verdict.state not in _STATES:
        return None
    for hit in snapshot.causes:
        if hit.confidence < SURE:
            return None  # the surest come first
        if not (hit.slow and verdict.state == "stalled") and _is_of_now(hit, verdict.since_t):
            return hit
    return None


def _is_of_now(hit: CauseHit, since_t: float) -> bool:
    """Stacks and NCCL's answer that are older than the last sign of activity speak of something that is over."""
    dated = [source for source in hit.read_from if source.kind in ("stack", "ras")]
    return all(source.t is not None and source.t >= since_t for source in dated)
