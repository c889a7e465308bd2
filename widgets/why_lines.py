"""The verdict in full: all evidence, what was not seen, every next step, and how it came to this."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.model import CauseHit, Missing, Snapshot, VerdictChange
from sgmon.text import clean
from sgmon.units import lasting, percent, rank_list, state_age
from widgets.line import Line, wrap
from widgets.states import signal_label, state_style


def _cause_title(hit: CauseHit) -> Line:
    where = f"  {rank_list(hit.ranks)}" if any(hit.ranks) else ""
    kind = "slow, no hang: " if hit.slow else ""
    return (
        (f" {percent(hit.confidence * 100):>4}  ", "key"),
        (kind + clean(hit.title, 200), "strong"),
        (where, "odd"),
    )


def why_lines(snapshot: Snapshot, width: int) -> list[Line]:
    """A page about the verdict."""
    verdict = snapshot.verdict
    look = state_style(verdict.state)
    rows = wrap(
        ((f" {look.glyph} {look.word} ", look.badge), (" ", ""), (clean(verdict.headline, 600), "strong")),
        width,
        indent=3,
    )
    facts = [f"{state_age(verdict.state, snapshot.t - verdict.since_t)}"]
    facts += [f"phase {clean(verdict.phase, 30)}"] if verdict.phase else []
    facts += [f"confidence {percent(verdict.confidence * 100)}"] if verdict.confidence else []
    facts += [f"rule {clean(verdict.rule, 60)}"] if verdict.rule else []
    rows += [((" " + " · ".join(facts), "dim"),), (), ((" because", "title"),)]
    for item in verdict.evidence:
        named = (item.rank and item.rank in item.text) or (item.pid and str(item.pid) in item.text)
        who = f"{item.rank} " if item.rank and not named else ""
        who += f"(pid {item.pid}) " if item.pid and not named else ""
        line: Line = ((f" {signal_label(item.signal, 8):<8} ", "info"), (who, "odd"), (clean(item.text, 1000), ""))
        rows += wrap(line, width, indent=10)
    if not verdict.evidence:
        rows.append(((" no evidence named", "dim"),))
    rows += _not_seen(snapshot, width)
    rows += [(), ((" next", "title"),)]
    for number, step in enumerate(verdict.next, 1):
        key: Line = ((step.key, "key"), (": ", "dim")) if step.key else ()
        rows += wrap(((f" {number}. ", "key"), *key, (clean(step.text, 600), "strong")), width, indent=4)
        if step.command:
            rows += wrap((("    $ ", "dim"), (clean(step.command, 1000), "accent")), width, indent=6)
    if not verdict.next:
        rows.append(((" nothing to do", "dim"),))
    if snapshot.causes:
        rows += [(), ((" known causes that fit", "title"),)]
        for hit in snapshot.causes:
            rows += wrap(_cause_title(hit), width, indent=4)
            for fact in hit.evidence:
                rows += wrap((("    ", ""), (clean(fact, 400), "dim")), width, indent=4)
            if hit.advice:
                rows += wrap((("    ", ""), (clean(hit.advice, 800), "")), width, indent=4)
            if hit.command:
                rows += wrap((("    $ ", "dim"), (clean(hit.command, 600), "accent")), width, indent=6)
            rows += [(("    " + clean(source, 200), "dim"),) for source in hit.sources[:2]]
    if snapshot.verdicts:
        rows += [(), ((" history", "title"),)]
        rows += [_change_line(change, snapshot.t) for change in reversed(_distinct(snapshot.verdicts))]
    return rows


def _change_line(change: VerdictChange, t: float) -> Line:
    look = state_style(change.state)
    return (
        (f" {lasting(t - change.t):>7} ago  ", "dim"),
        (f"{look.glyph} {look.word:<15} ", look.text_style),
        (clean(change.headline, 300), ""),
    )


def _distinct(changes: Sequence[VerdictChange]) -> list[VerdictChange]:
    """Without a change that says what the one before said."""
    kept: list[VerdictChange] = []
    for change in changes:
        if not kept or (kept[-1].state, kept[-1].headline) != (change.state, change.headline):
            kept.append(change)
    return kept


def _not_seen(snapshot: Snapshot, width: int) -> list[Line]:
    """What could not be read, once each, with the processes it is about and what would give it."""
    about: dict[Missing, list[str]] = {item: [] for item in snapshot.verdict.missing}
    for item in snapshot.server.missing if snapshot.server is not None else ():
        about.setdefault(item, [])
    for process in snapshot.procs.processes:
        for item in process.missing:
            about.setdefault(item, []).append(process.rank or process.role.replace("_", " "))
    if snapshot.gpu.unavailable:
        about.setdefault(Missing("gpu", snapshot.gpu.unavailable, snapshot.gpu.remedy), [])
    rows: list[Line] = [(), ((" not seen", "title"),)]
    for item, names in about.items():
        who = f"{clean(rank_list(names), 60)}: " if names else ""
        line: Line = ((f" {signal_label(item.signal, 8):<8} ", "warn"), (who, ""), (clean(item.why, 600), ""))
        rows += wrap(line, width, indent=10)
        if item.remedy:
            rows += wrap(((" fix      ", "key"), (clean(item.remedy, 600), "accent")), width, indent=10)
    return rows if about else [*rows, ((" nothing: all that sgmon reads could be read", "dim"),)]
