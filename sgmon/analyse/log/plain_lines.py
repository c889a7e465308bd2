"""Folds lines around which nothing stands, by many at once: only those that have a literal of the catalogue, and all
of a traceback, are read."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.lines import LOOK
from sgmon.analyse.log.log_so_far import LogSoFar
from sgmon.analyse.log.repeats import Repeats
from sgmon.analyse.log.shapes import hot_lines, shape_of


def fold_plain(log: LogSoFar, text: str, t: float) -> None:
    """Fold whole lines and ended frames; a second start in the file begins the counting of time anew."""
    restart = log.rules.restart
    at = text.find(restart)
    while at >= 0:
        begin = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at) + 1 or len(text)
        if begin:
            _lines(log, text[:begin], t)
        runs = log.run.runs
        _lines(log, text[begin:end], t, restarts=True)
        if log.run.runs != runs:
            log.gaps.begin_again()
        text = text[end:]
        at = text.find(restart)
    if text:
        _lines(log, text, t)


def _lines(log: LogSoFar, text: str, t: float, restarts: bool = False) -> None:
    """restarts: the line by which another start begins is among them."""
    lines = text.split("\n")
    stop = len(lines) - 1 if not lines[-1] else len(lines)
    shapes = shape_of(text).split(b"\n")
    log.gaps.take(text, lines, log.lines + 1, log.rules, log.run.near, shapes)
    run = log.run
    at = 0
    ignores = None if run.wants_every_line else run.milestones.ignores
    serving = run.serving and not restarts
    repeats = Repeats(run)
    for index, rules, special in hot_lines(log.rules, text, lines, serving, ignores, shapes):
        previous = lines[index - 1] if index else log.previous
        if (index or not log.open_line) and repeats.holds(index, lines[index], previous, rules, special):
            at = index + 1
            continue
        for held, its_rules in repeats.take():
            _hot(log, lines, held, its_rules, t)
        at = _cold(log, lines, at, index, t)
        if run.wants(rules, special):
            _hot(log, lines, index, rules, t, special)
        at = index + 1
    for held, its_rules in repeats.take():
        _hot(log, lines, held, its_rules, t)
    _cold(log, lines, at, stop, t)
    number = log.lines + 1
    log.lines += len(lines) - 1
    log.open_line = stop == len(lines)
    log.previous = lines[stop - 1]
    for back in range(stop - 1, max(-1, stop - 50), -1):
        if lines[back].strip():
            log.last_text, log.last_number = lines[back][-LOOK:], number + back
            break


def _hot(log: LogSoFar, lines: list[str], index: int, rules: Sequence[Rule], t: float, special: bool = False) -> None:
    """A line with a literal."""
    run, continued = log.run, log.open_line and not index
    if continued:
        run.ranks.begun(log.previous)
    else:
        run.skip(lines[index - 1] if index else log.previous)
    run.line(log.lines + 1 + index, lines[index], rules, t, continued, special=special)


def _cold(log: LogSoFar, lines: list[str], at: int, stop: int, t: float) -> int:
    """Lines without a literal: they count only inside of a traceback."""
    run = log.run
    while run.wants_every_line and at < stop:
        continued = log.open_line and not at
        run.line(log.lines + 1 + at, lines[at], (), t, continued, special=False)
        at += 1
    return at
