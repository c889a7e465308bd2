"""A log folded to what it told: milestones per rank, bars, arguments, the first cause of failure, gaps. Incremental.

Lines are ``\\n`` lines, counted from 1 as an editor or ``wc -l`` counts them; the frames of a bar between ``\\r``
have the number of the line that they are in. Any chunking of the same text folds to the same state: whole lines
(and the frames that a ``\\r`` ends) are folded for good, the unterminated tail is folded anew at every look.

Speed: only lines that have a literal of the catalogue are looked at, and ``shapes`` knows most lines already.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sgmon.analyse.log.gaps import Gaps
from sgmon.analyse.log.language import choose
from sgmon.analyse.log.lines import LOOK, describe
from sgmon.analyse.log.run import Run
from sgmon.analyse.log.shapes import hot_lines
from sgmon.model.log import LogReading, LogState
from sgmon.servers import registry
from sgmon.servers.family import LogRules

#: Longest unterminated tail kept; what is longer is a dump, and only its beginning is read.
TAIL = LOOK + 1
#: Characters after which the family is decided, known or not.
CHOICE = 65_536


@dataclass(slots=True)
class _Log:
    """What is known of the file that is read."""

    run: Run
    path: str = ""
    kind: str = ""
    change: str = ""
    size: int | None = None
    note: str = ""
    lines: int = 0  # whole lines
    tail: str = ""  # after the last \n or \r
    open_line: bool = False  # a \r ended a frame of a line that is not ended
    tail_t: float = 0.0
    gaps: Gaps = field(default_factory=Gaps)
    previous: str = ""
    last_text: str = ""
    last_number: int = 0
    last_byte_t: float | None = None
    last_activity_t: float | None = None


class LogFold:
    """``feed`` readings in order, ask ``state`` any time."""

    def __init__(self, rules: LogRules | None = None) -> None:
        """rules: of the family that writes it. None: of the one whose language the first lines speak."""
        self._chosen = rules
        self._rules = rules or registry.log_rules()[0]
        self._log = _Log(Run.begin(self._rules))
        self._begin: list[tuple[LogReading, float]] = []  # until the family is known

    def feed(self, reading: LogReading, t: float) -> None:
        """Take new text. ``t``: when it was read, in watch seconds; older text is as old as the reading says."""
        t -= reading.age_s or 0.0
        if self._chosen is None:
            self._choose(reading, t)
        self._feed(reading, t)

    def _choose(self, reading: LogReading, t: float) -> None:
        self._begin.append((reading, t))
        text = "".join(reading.text[:CHOICE] for reading, _ in self._begin)
        self._chosen = choose(text)
        if self._chosen is None and len(text) >= CHOICE:
            self._chosen = (
                self._rules
            )  # nobody's language: read as the first family's, and said so by LogState.family
        if self._chosen is not None and self._chosen is not self._rules:
            self._rules, self._log = self._chosen, _Log(Run.begin(self._chosen))
            for earlier, earlier_t in self._begin[:-1]:
                self._feed(earlier, earlier_t)
        if self._chosen is not None:
            self._begin = []

    def _feed(self, reading: LogReading, t: float) -> None:
        if reading.path != self._log.path and self._log.path and reading.change not in ("rotated", "appeared"):
            self._log = _Log(Run.begin(self._rules))
        if reading.change == "truncated":
            self._log = _Log(Run.begin(self._rules))
        elif reading.change == "rotated":
            self._finish(t)  # the server goes on in a new file: what it said still holds
        self._log.path, self._log.kind, self._log.change = reading.path, reading.kind, reading.change
        self._log.size = reading.size if reading.size is not None else self._log.size
        if reading.note or reading.change:
            self._log.note = reading.note
        if reading.text:
            self._take(reading.text, t)

    def state(self) -> LogState:
        """Everything so far, the unterminated tail included."""
        run, lines, gaps = self._log.run, self._log.lines, self._log.gaps
        tail = self._log.tail
        if tail or self._log.open_line:
            lines += 1
        if tail.strip():
            look = tail[:LOOK]
            gaps = gaps.with_tail(look, self._log.lines + 1)
            _, rules, special = next(
                hot_lines(self._rules, look, [look], run.serving and self._rules.restart not in look),
                (0, [], False),
            )
            if rules or special or run.wants_every_line:
                run = run.copy()
                if run.wants(rules, special):
                    if not self._log.open_line:
                        run.skip(self._log.previous)
                    run.line(self._log.lines + 1, look, rules, self._log.tail_t, self._log.open_line)
        newest = describe(self._log.lines + 1, tail, self._rules) if tail.strip() else None
        if newest is None and self._log.last_text:
            newest = describe(self._log.last_number, self._log.last_text, self._rules)
        return run.state(
            LogState(
                family=self._rules.family,
                path=self._log.path,
                kind=self._log.kind,
                change=self._log.change,
                size=self._log.size,
                lines=lines,
                first_t=gaps.first_t,
                last_t=gaps.last_t,
                last_line=newest,
                last_byte_t=self._log.last_byte_t,
                last_activity_t=self._log.last_activity_t,
                longest_gap=gaps.gap,
                note=self._log.note,
            )
        )

    def _finish(self, t: float) -> None:
        if self._log.tail:
            self._fold(self._log.tail + "\n", t)
        self._log.tail, self._log.open_line = "", False
        self._log.lines = 0
        self._log.gaps.line = 0

    def _take(self, text: str, t: float) -> None:
        if "\x00" in text:
            text = text.replace("\x00", "")
        self._log.last_byte_t = t
        cut = max(text.rfind("\n"), text.rfind("\r")) + 1
        if not cut:
            self._lengthen(text, t)
            return
        whole, rest = self._log.tail + text[:cut], text[cut:]
        self._log.tail = ""
        if self._is_activity(whole):
            self._log.last_activity_t = t
        self._fold(whole, t)
        self._lengthen(rest, t)

    def _lengthen(self, rest: str, t: float) -> None:
        if not rest:
            return
        if len(self._log.tail) < TAIL:
            self._log.tail += rest[: TAIL - len(self._log.tail)]
        self._log.tail_t = t
        moved = self._log.run.moves(self._log.tail[:LOOK], self._log.lines + 1, t)
        if moved or not self._log.tail.lstrip().startswith(self._rules.begins):
            self._log.last_activity_t = t

    def _is_activity(self, text: str) -> bool:
        """Whether anything but the echo of our own health probe is in ``text``."""
        if not any(key in text for key in self._rules.probe_keys):
            return bool(text.strip())
        probe = self._rules.probe
        return probe is None or any(
            line.strip() and not probe.search(line) for line in text.replace("\r", "\n").split("\n")
        )

    def _fold(self, text: str, t: float) -> None:
        """Fold whole lines and ended frames; a second start in the file begins the counting of time anew."""
        restart = self._rules.restart
        at = text.find(restart)
        while at >= 0:
            begin = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at) + 1 or len(text)
            if begin:
                self._lines(text[:begin], t)
            runs = self._log.run.runs
            self._lines(text[begin:end], t)
            if self._log.run.runs != runs:
                self._log.gaps.begin_again()
            text = text[end:]
            at = text.find(restart)
        if text:
            self._lines(text, t)

    def _lines(self, text: str, t: float) -> None:
        log = self._log
        lines = text.split("\n")
        stop = len(lines) - 1 if not lines[-1] else len(lines)
        log.gaps.take(text, lines, log.lines + 1)
        run, base = log.run, log.lines + 1
        at = 0
        ignores = None if run.wants_every_line else run.milestones.ignores
        serving = run.serving and self._rules.restart not in text
        for index, rules, special in hot_lines(self._rules, text, lines, serving, ignores):
            at = self._cold(lines, at, index, t)
            if run.wants(rules, special):
                if index > 0 or not log.open_line:
                    run.skip(lines[index - 1] if index else log.previous)
                run.line(base + index, lines[index], rules, t, continued=log.open_line and not index)
            at = index + 1
        self._cold(lines, at, stop, t)
        log.lines += len(lines) - 1
        log.open_line = stop == len(lines)
        log.previous = lines[stop - 1]
        for back in range(stop - 1, max(-1, stop - 50), -1):
            if lines[back].strip():
                log.last_text, log.last_number = lines[back][-LOOK:], base + back
                break

    def _cold(self, lines: list[str], at: int, stop: int, t: float) -> int:
        """Lines without a literal: they count only inside of a traceback."""
        run = self._log.run
        while run.wants_every_line and at < stop:
            continued = self._log.open_line and not at
            run.line(self._log.lines + 1 + at, lines[at], (), t, continued)
            at += 1
        return at
