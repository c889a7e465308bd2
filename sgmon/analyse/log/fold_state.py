"""What the fold of a log has come to, the unfinished line included."""

from __future__ import annotations

from sgmon.analyse.log.engines import told_apart
from sgmon.analyse.log.envelope import Envelope, Opened, uncoloured
from sgmon.analyse.log.lines import LOOK, describe
from sgmon.analyse.log.log_so_far import LogSoFar
from sgmon.analyse.log.run import Run
from sgmon.analyse.log.run_state import state_of
from sgmon.analyse.log.shapes import hot_lines
from sgmon.model.log import LogState


def state_so_far(log: LogSoFar, envelope: Envelope, *, known: bool) -> LogState:
    """Everything so far. known: the family whose rules these are does write it."""
    run, gaps = log.run, log.gaps
    number, look = log.lines + 1, uncoloured(log.tail[:LOOK])
    last_number, last_text = (number, look) if look.strip() else (log.last_number, log.last_text)
    parts = log.parts
    if look.strip() and not envelope.plain:
        opened = list(envelope.open([look], number))
        if opened and not opened[-1].text.startswith('{"'):
            run, parts = _with_tail(log, run, opened[-1]), dict(parts)
            if opened[-1].source in parts:
                parts[opened[-1].source] = _with_tail(log, parts[opened[-1].source], opened[-1])
            last_text = opened[-1].text
    elif look.strip():
        gaps = gaps.with_tail(look, number, log.rules, log.run.near)
        run = _with_tail(log, run, Opened(number, look))
    base = LogState(
        family=log.rules.family if known or run.milestones.found else "",
        path=log.path,
        kind=log.kind,
        change=log.change,
        size=log.size,
        lines=log.lines + bool(log.tail or log.open_line),
        first_t=gaps.first_t,
        last_t=gaps.last_t,
        clock_zero=log.clock_zero,
        last_line=describe(last_number, last_text, log.rules, log.run.near) if last_text else None,
        last_byte_t=log.last_byte_t,
        last_activity_t=log.last_activity_t,
        undated_t=log.undated_t,
        longest_gap=gaps.gap,
        note=log.note,
    )
    alone = {name: state_of(part, base) for name, part in parts.items()} if len(parts) > 1 else {}
    return told_apart(state_of(run, base), alone, log.counts)


def _with_tail(log: LogSoFar, run: Run, tail: Opened) -> Run:
    """``run`` as it would be with the unfinished line."""
    serving = run.serving and log.rules.restart not in tail.text
    _, rules, special = next(hot_lines(log.rules, tail.text, [tail.text], serving), (0, [], False))
    run.writer(tail.source)
    if not (rules or special or run.wants_every_line):
        return run
    run = run.copy()
    if run.wants(rules, special):
        if not log.open_line:
            run.skip(log.before.get(tail.source, log.previous))
        else:
            run.ranks.begun(log.previous)
        run.line(tail.number, tail.text, rules, log.tail_t, log.open_line)
    return run
