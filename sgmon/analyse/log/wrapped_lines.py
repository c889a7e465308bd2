"""Folds lines that stand in an envelope: each for the whole log, and for the one who wrote it."""

from __future__ import annotations

from sgmon.analyse.log.envelope import Envelope, Opened
from sgmon.analyse.log.lines import LOOK
from sgmon.analyse.log.log_so_far import LearnedError, LogSoFar
from sgmon.analyse.log.prefix import epoch
from sgmon.analyse.log.run import Run
from sgmon.analyse.log.shapes import hot_lines
from sgmon.model.log import MOST_RANKS

#: Writers of one file that are told apart; more are rather numbers of lines.
WRITERS = 32
#: So many lines of as many writers have none: what differs is a number or an id of the line.
DIFFERENT = 12


def fold_wrapped(log: LogSoFar, envelope: Envelope, text: str, t: float, *, early: bool) -> None:
    """Fold whole lines. early: the beginning can be read again, as ``LearnedError`` says that it must."""
    lines = text.removesuffix("\n").split("\n")
    entries = list(_joined(log, list(envelope.open(lines, log.lines + 1))))
    bodies = [entry.text.replace("\n", " ") for entry in entries]
    joined = "\n".join(bodies)
    serving = log.run.serving and log.rules.restart not in joined
    hot = {index: (rules, special) for index, rules, special in hot_lines(log.rules, joined, bodies, serving)}
    for index, entry in enumerate(entries):
        own = _own_time(log, entry)
        when = own if own is not None else entry.t + log.shift_s if entry.t is not None else None
        if when is not None:
            log.gaps.at(entry.number, when)
        rules, special = hot.get(index, ((), False))
        _count(log, envelope, entry.source, early)
        runs = log.run.runs
        for run in _runs(log, entry.source):
            run.writer(entry.source)
            if (rules or special or run.wants_every_line) and run.wants(rules, special):
                run.skip(log.before.get(entry.source, ""))
                run.line(entry.number, entry.text, rules, t, when=when if own is None else None)
        if log.run.runs != runs:
            log.gaps.begin_again()
        if entry.source in log.before or len(log.before) < MOST_RANKS:
            log.before[entry.source] = entry.text[-400:]
        if entry.text.strip():
            log.last_text, log.last_number = entry.text[-LOOK:], entry.number
    log.lines += len(lines)


def _count(log: LogSoFar, envelope: Envelope, writer: str, early: bool) -> None:
    """Count a line of this writer; where each line has another one, they are none."""
    if not _is_told_apart(log, writer):
        return
    log.counts[writer] = log.counts.get(writer, 0) + 1
    if early and len(log.counts) == DIFFERENT and max(log.counts.values()) == 1:
        envelope.one_writer = True
        raise LearnedError


def _runs(log: LogSoFar, writer: str) -> list[Run]:
    """What a line of this writer counts for: the whole log, and what it alone wrote."""
    if not _is_told_apart(log, writer):
        return [log.run]
    part = log.parts.setdefault(writer, Run.begin(log.rules))
    part.near = log.run.near
    return [log.run, part]


def _is_told_apart(log: LogSoFar, writer: str) -> bool:
    return bool(writer) and (writer in log.parts or len(log.parts) < WRITERS)


def _own_time(log: LogSoFar, entry: Opened) -> float | None:
    record = log.rules.record.match(entry.text)
    near = entry.t if entry.t is not None else log.run.near
    own = epoch(record["time"], near) if record else None
    if own is not None and entry.t is not None:
        log.shift_s = round((own - entry.t) / 900) * 900.0  # another time zone
    return own


def _joined(log: LogSoFar, entries: list[Opened]) -> list[Opened]:
    """Entries whose line was cut by the collector in one piece."""
    halves, found = log.halves, []
    for entry in entries:
        begun = halves.pop(entry.source, None)
        if begun is not None:
            entry = Opened(begun.number, begun.text + entry.text, entry.source, begun.t, entry.partial)
        if entry.partial and len(entry.text) < LOOK and len(halves) < WRITERS:
            halves[entry.source] = entry
        else:
            found.append(entry)
    return found
