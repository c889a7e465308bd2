"""What sgmon says over a replayed start, as rows to read: each verdict whole, at each change of its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sgmon.model import Evidence, NextStep, Snapshot, Verdict
from tests.golden import row, word

_NUMBER = re.compile(r"\d+(?:[.:]\d+)*(?:h\d\dm|m\d\ds|s|ms)?")
#: a fact that is longer and stood there before is cut
_LONG, _CUT = 160, 60
_UNIT = re.compile(r"# (?:B|KiB|MiB|GiB|TiB)\b")


@dataclass(frozen=True)
class Said:
    """What was said at ``t``. phase: of the start."""

    t: float
    phase: str
    verdict: Verdict


def words_of(verdict: Verdict) -> tuple[object, ...]:
    """What makes a verdict another than the one before: all but its numbers and the log's newest line."""
    return (
        verdict.state,
        verdict.rule,
        verdict.phase,
        verdict.odd_ranks,
        verdict.nodes,
        verdict.confidence,
        verdict.pending,
        _plain(verdict.headline),
        tuple((one.signal, one.rank, "" if one.signal == "log" else _plain(one.text)) for one in verdict.evidence),
        tuple((one.signal, _plain(one.why), one.remedy) for one in verdict.missing),
        tuple((_plain(one.text), one.key) for one in verdict.next),
    )


def _plain(text: str) -> str:
    return _UNIT.sub("#", _NUMBER.sub("#", text))


def rows(said: Sequence[Said], last: Snapshot) -> Iterator[str]:
    """What stands as it stood in the verdict before is left out of the gaps and steps, and cut where it is long."""
    before: frozenset[str] = frozenset()
    gaps: list[str] = []
    steps: list[str] = []
    for one in said:
        yield from _head(one)
        facts = [f" . {_fact(fact)}" for fact in one.verdict.evidence]
        yield from (
            f"{fact[:_CUT]} ... as before" if len(fact) > _LONG and _plain(fact) in before else fact for fact in facts
        )
        before = frozenset(_plain(fact) for fact in facts)
        now = [
            f" ? {one.signal}: {one.why}" + (f" [{one.remedy}]" if one.remedy else "") for one in one.verdict.missing
        ]
        if now != gaps:
            yield from now or [" ? none"]
        gaps, now = now, [f" > {_step(step)}" for step in one.verdict.next]
        if now != steps:
            yield from now or [" > none"]
        steps = now
    yield f"== {word(last.t)} the end: phase {last.phase} ({last.phase_source})"
    yield from (f"forecast {row(one)}" for one in last.forecasts)
    yield from (f"memory {row(one)}" for one in last.memory_plans)
    yield from (f"cause {row(one)}" for one in last.causes)


def _head(said: Said) -> Iterator[str]:
    found = said.verdict
    odd = f" of {', '.join(found.odd_ranks)}" if found.odd_ranks else ""
    nodes = f" on {', '.join(found.nodes)}" if found.nodes else ""
    sure = f"{found.rule}, {word(found.confidence)}"
    yield f"== {word(said.t)} {found.state} ({sure}) since {word(found.since_t)}{odd}{nodes}"
    yield f"   {found.headline}"
    start = "" if said.phase == found.phase else f"; the start's {said.phase or 'none'}"
    pending = f"; {found.pending} since {word(found.pending_t)}" if found.pending else ""
    if found.phase or start or pending:
        yield f"   phase {found.phase or 'none'}{start}{pending}"


def _fact(one: Evidence) -> str:
    of = " ".join(part for part in (one.signal, one.rank, f"pid {one.pid}" if one.pid else "") if part)
    return f"{of}: {one.text}" + (f" = {word(one.value)}" if one.value is not None else "")


def _step(one: NextStep) -> str:
    more = (
        f"`{one.command}`" if one.command else "",
        f"key {one.key}" if one.key else "",
        f"line {one.line}" if one.line is not None else "",
    )
    return " ".join((one.text, *(part for part in more if part)))
