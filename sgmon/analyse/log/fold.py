"""A log folded to what it told: milestones per rank, bars, arguments, the first cause of failure, gaps. Incremental.

Lines are ``\\n`` lines, counted from 1 as an editor or ``wc -l`` counts them; the frames of a bar between ``\\r``
have the number of the line that they are in. Any chunking of the same text folds to the same state: whole lines
(and the frames that a ``\\r`` ends) are folded for good, the unterminated tail is folded anew at every look.

Which family wrote it and what stands around its lines is learned from the text; what is learned late is applied to
the beginning too, which is read again.

Speed: only lines that have a literal of the catalogue are looked at, and ``shapes`` knows most lines already.
"""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.engines import told_apart
from sgmon.analyse.log.envelope import BARE_COLOUR, Envelope, Opened, uncoloured
from sgmon.analyse.log.language import choose
from sgmon.analyse.log.lines import LOOK, describe
from sgmon.analyse.log.log_so_far import LogSoFar
from sgmon.analyse.log.other_texts import named
from sgmon.analyse.log.own_probe import echo_s, is_activity
from sgmon.analyse.log.prefix import epoch
from sgmon.analyse.log.repeats import Repeats
from sgmon.analyse.log.run import Run
from sgmon.analyse.log.run_state import state_of
from sgmon.analyse.log.shapes import hot_lines, shape_of
from sgmon.model.log import MOST_RANKS, LogReading, LogState
from sgmon.servers import registry
from sgmon.servers.family import LogRules

#: Longest unterminated tail kept; what is longer is a dump, and only its beginning is read.
TAIL = LOOK + 1
#: Characters after which the family is decided, known or not.
CHOICE = 65_536
#: Characters from the beginning that are kept, to be read again when something is learned.
EARLY = 1 << 18
#: Writers of one file that are told apart; more are rather numbers of lines.
WRITERS = 32
#: So many lines of as many writers have none: what differs is a number or an id of the line.
DIFFERENT = 12


class _LearnedError(Exception):
    """Something was learned that changes how the beginning is read."""


class LogFold:
    """``feed`` readings in order, ask ``state`` any time."""

    def __init__(self, rules: LogRules | None = None, epoch: float | None = None) -> None:
        """rules: of the family whose process writes it, unless the first lines speak another's language.

        epoch: of watch second 0, which tells the year of dates without one.
        """
        self._given = rules
        self._epoch = epoch
        self._start()

    def set_epoch(self, epoch: float) -> None:
        """The wall clock at watch second 0 is known better."""
        self._epoch = epoch

    def _start(self) -> None:
        self._known: LogRules | None = None
        self._rules = self._given or registry.log_rules()[0]
        self._envelope = Envelope(self._rules)
        self._log = LogSoFar(Run.begin(self._rules))
        self._early: list[tuple[LogReading, float]] | None = []
        self._early_size = 0
        self._bare_colours = False  # colours whose escape was lost, as in text copied from a page

    def feed(self, reading: LogReading, t: float) -> None:
        """Take new text. ``t``: when it was read, in watch seconds; older text is as old as the reading says."""
        t -= reading.age_s or 0.0
        log = self._log
        another = reading.path != log.path and log.path and reading.change not in ("rotated", "appeared")
        if another or reading.change == "truncated":
            self._start()
        if self._early is not None:
            self._early.append((reading, t))
            self._early_size += len(reading.text)
        try:
            self._choose()
            self._feed(reading, t)
        except _LearnedError:
            self._again()
        if self._early_size > EARLY:
            self._early = None

    def _choose(self) -> None:
        before = sum(len(reading.text) for reading, _ in (self._early or ())[:-1])
        if self._early is None or (self._known is not None and before > CHOICE):
            return
        self._known = choose("".join(reading.text[:CHOICE] for reading, _ in self._early), self._given) or self._known
        if self._known is not None and self._known is not self._rules:
            self._rules, self._envelope = self._known, Envelope(self._known)
            raise _LearnedError

    def _again(self) -> None:
        """Read the beginning again; each time something more is known, and that is limited."""
        while True:
            self._log = LogSoFar(Run.begin(self._rules))
            try:
                for reading, t in self._early or ():
                    self._feed(reading, t)
                return
            except _LearnedError:
                continue

    def _feed(self, reading: LogReading, t: float) -> None:
        log = self._log
        if reading.change == "rotated":
            self._finish(t)  # the server goes on in a new file: what it said still holds
        log.path, log.kind, log.change = reading.path, reading.kind, reading.change
        log.size = reading.size if reading.size is not None else log.size
        if reading.note or reading.change:
            log.note = reading.note
        log.run.near = None if self._epoch is None else self._epoch + t
        if reading.text:
            log.undated_t = t if reading.undated else log.undated_t
            self._take(reading.text, t)
        if reading.ends_earlier:
            self._begin_again()

    def _begin_again(self) -> None:
        """The server has said nothing so far: all that was read is of earlier starts."""
        log = self._log
        log.open_line, log.tail = log.open_line or bool(log.tail), ""
        for run in (log.run, *log.parts.values()):
            run.begin_again(log.lines + 1 + log.open_line)
        log.gaps.begin_again()
        log.before.clear()
        log.halves.clear()
        log.previous, log.last_text, log.last_number = "", "", 0
        log.last_byte_t = log.last_activity_t = log.clock_zero = None

    def state(self) -> LogState:
        """Everything so far, the unterminated tail included."""
        log, run, gaps = self._log, self._log.run, self._log.gaps
        number, look = log.lines + 1, uncoloured(log.tail[:LOOK])
        last_number, last_text = (number, look) if look.strip() else (log.last_number, log.last_text)
        parts = log.parts
        if look.strip() and not self._envelope.plain:
            opened = list(self._envelope.open([look], number))
            if opened and not opened[-1].text.startswith('{"'):
                run, parts = self._with_tail(run, opened[-1]), dict(parts)
                if opened[-1].source in parts:
                    parts[opened[-1].source] = self._with_tail(parts[opened[-1].source], opened[-1])
                last_text = opened[-1].text
        elif look.strip():
            gaps = gaps.with_tail(look, number, self._rules, log.run.near)
            run = self._with_tail(run, Opened(number, look))
        base = LogState(
            family=self._rules.family if self._known or run.milestones.found else "",
            path=log.path,
            kind=log.kind,
            change=log.change,
            size=log.size,
            lines=log.lines + bool(log.tail or log.open_line),
            first_t=gaps.first_t,
            last_t=gaps.last_t,
            clock_zero=log.clock_zero,
            last_line=describe(last_number, last_text, self._rules, log.run.near) if last_text else None,
            last_byte_t=log.last_byte_t,
            last_activity_t=log.last_activity_t,
            undated_t=log.undated_t,
            longest_gap=gaps.gap,
            note=log.note,
        )
        alone = {name: state_of(part, base) for name, part in parts.items()} if len(parts) > 1 else {}
        state = told_apart(state_of(run, base), alone, log.counts)
        if state.milestones or self._early is None:
            return state
        beginning = "".join(reading.text[:CHOICE] for reading, _ in self._early)[:CHOICE]
        return named(state, uncoloured(beginning), self._rules)

    def _with_tail(self, run: Run, tail: Opened) -> Run:
        """``run`` as it would be with the unfinished line."""
        serving = run.serving and self._rules.restart not in tail.text
        _, rules, special = next(hot_lines(self._rules, tail.text, [tail.text], serving), (0, [], False))
        run.writer(tail.source)
        if not (rules or special or run.wants_every_line):
            return run
        run = run.copy()
        if run.wants(rules, special):
            if not self._log.open_line:
                run.skip(self._log.before.get(tail.source, self._log.previous))
            else:
                run.ranks.begun(self._log.previous)
            run.line(tail.number, tail.text, rules, self._log.tail_t, self._log.open_line)
        return run

    def _finish(self, t: float) -> None:
        if self._log.tail:
            self._fold(self._log.tail + "\n", t)
        self._log.tail, self._log.open_line = "", False
        self._log.lines = 0
        self._log.gaps.line = 0

    def _take(self, text: str, t: float) -> None:
        if "\x00" in text:
            text = text.replace("\x00", "")
        if not self._log.lines and not self._log.tail:
            text = text.lstrip("\ufeff\ufffd")  # what says how a file is coded
        self._log.last_byte_t = t
        plain = self._envelope.plain
        cut = max(text.rfind("\n"), text.rfind("\r") if plain else -1) + 1
        if cut and text[cut - 1] == "\r":  # the beginning of a line that has no words yet is no frame of its own
            begin = text.rfind("\n", 0, cut) + 1
            if not text[begin:cut].strip() and (begin or not self._log.tail.strip()):
                cut = begin
        if not cut:
            self._lengthen(text, t)
            return
        whole, rest = self._log.tail + text[:cut], text[cut:]
        self._log.tail = ""
        if is_activity(self._rules, whole):
            self._log.last_activity_t = t - echo_s(self._rules, whole, self._log.run.near)
        before = self._log.gaps.last_t
        self._fold(whole, t)
        dated = self._log.gaps.last_t
        if dated is not None and dated != before:
            zero = self._log.clock_zero
            self._log.clock_zero = dated - t if zero is None else max(zero, dated - t)
        self._lengthen(rest, t)

    def _lengthen(self, rest: str, t: float) -> None:
        if not rest:
            return
        if len(self._log.tail) < TAIL:
            self._log.tail += rest[: TAIL - len(self._log.tail)]
        self._log.tail_t = t
        moved = self._log.run.moves(self._log.tail[:LOOK], self._log.lines + 1, t)
        said = self._log.tail.lstrip()
        if moved or (said and not said.startswith(self._rules.begins)):
            self._log.last_activity_t = t

    def _fold(self, text: str, t: float) -> None:
        if "\x1b" in text or self._bare_colours:
            text = uncoloured(text)
        elif self._early is not None and BARE_COLOUR in text:
            self._bare_colours, text = True, uncoloured(text)
        if (self._early is not None or not self._envelope.plain) and self._envelope.may_teach(text):
            learned = self._envelope.learn(text.split("\n"), self._early is not None)
            if learned is not None and self._early is not None:
                raise _LearnedError
        if self._envelope.plain:
            self._starts(text, t)
        else:
            self._wrapped(text, t)

    def _starts(self, text: str, t: float) -> None:
        """Fold whole lines and ended frames; a second start in the file begins the counting of time anew."""
        restart = self._rules.restart
        at = text.find(restart)
        while at >= 0:
            begin = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at) + 1 or len(text)
            if begin:
                self._lines(text[:begin], t)
            runs = self._log.run.runs
            self._lines(text[begin:end], t, restarts=True)
            if self._log.run.runs != runs:
                self._log.gaps.begin_again()
            text = text[end:]
            at = text.find(restart)
        if text:
            self._lines(text, t)

    def _lines(self, text: str, t: float, restarts: bool = False) -> None:
        """restarts: the line by which another start begins is among them."""
        log = self._log
        lines = text.split("\n")
        stop = len(lines) - 1 if not lines[-1] else len(lines)
        shapes = shape_of(text).split(b"\n")
        log.gaps.take(text, lines, log.lines + 1, self._rules, log.run.near, shapes)
        run = log.run
        at = 0
        ignores = None if run.wants_every_line else run.milestones.ignores
        serving = run.serving and not restarts
        repeats = Repeats(run)
        for index, rules, special in hot_lines(self._rules, text, lines, serving, ignores, shapes):
            previous = lines[index - 1] if index else log.previous
            if (index or not log.open_line) and repeats.holds(index, lines[index], previous, rules, special):
                at = index + 1
                continue
            for held, its_rules in repeats.take():
                self._hot(lines, held, its_rules, t)
            at = self._cold(lines, at, index, t)
            if run.wants(rules, special):
                self._hot(lines, index, rules, t, special)
            at = index + 1
        for held, its_rules in repeats.take():
            self._hot(lines, held, its_rules, t)
        self._cold(lines, at, stop, t)
        number = log.lines + 1
        log.lines += len(lines) - 1
        log.open_line = stop == len(lines)
        log.previous = lines[stop - 1]
        for back in range(stop - 1, max(-1, stop - 50), -1):
            if lines[back].strip():
                log.last_text, log.last_number = lines[back][-LOOK:], number + back
                break

    def _hot(self, lines: list[str], index: int, rules: Sequence[Rule], t: float, special: bool = False) -> None:
        """A line with a literal."""
        log = self._log
        run, continued = log.run, log.open_line and not index
        if continued:
            run.ranks.begun(log.previous)
        else:
            run.skip(lines[index - 1] if index else log.previous)
        run.line(log.lines + 1 + index, lines[index], rules, t, continued, special=special)

    def _cold(self, lines: list[str], at: int, stop: int, t: float) -> int:
        """Lines without a literal: they count only inside of a traceback."""
        run = self._log.run
        while run.wants_every_line and at < stop:
            continued = self._log.open_line and not at
            run.line(self._log.lines + 1 + at, lines[at], (), t, continued, special=False)
            at += 1
        return at

    def _wrapped(self, text: str, t: float) -> None:
        """Fold whole lines that stand in an envelope: each for the whole log and for the one who wrote it."""
        log = self._log
        lines = text.removesuffix("\n").split("\n")
        entries = list(self._joined(list(self._envelope.open(lines, log.lines + 1))))
        bodies = [entry.text.replace("\n", " ") for entry in entries]
        joined = "\n".join(bodies)
        serving = log.run.serving and self._rules.restart not in joined
        hot = {index: (rules, special) for index, rules, special in hot_lines(self._rules, joined, bodies, serving)}
        for index, entry in enumerate(entries):
            own = self._own_time(entry)
            when = own if own is not None else entry.t + log.shift_s if entry.t is not None else None
            if when is not None:
                log.gaps.at(entry.number, when)
            rules, special = hot.get(index, ((), False))
            runs = log.run.runs
            for run in self._runs(entry.source):
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

    def _runs(self, writer: str) -> list[Run]:
        log = self._log
        if not writer or (writer not in log.parts and len(log.parts) >= WRITERS):
            return [log.run]
        log.counts[writer] = log.counts.get(writer, 0) + 1
        if len(log.counts) == DIFFERENT and max(log.counts.values()) == 1 and self._early is not None:
            self._envelope.one_writer = True
            raise _LearnedError
        part = log.parts.setdefault(writer, Run.begin(self._rules))
        part.near = log.run.near
        return [log.run, part]

    def _own_time(self, entry: Opened) -> float | None:
        record = self._rules.record.match(entry.text)
        near = entry.t if entry.t is not None else self._log.run.near
        own = epoch(record["time"], near) if record else None
        if own is not None and entry.t is not None:
            self._log.shift_s = round((own - entry.t) / 900) * 900.0  # another time zone
        return own

    def _joined(self, entries: list[Opened]) -> list[Opened]:
        """Entries whose line was cut by the collector in one piece."""
        halves, found = self._log.halves, []
        for entry in entries:
            begun = halves.pop(entry.source, None)
            if begun is not None:
                entry = Opened(begun.number, begun.text + entry.text, entry.source, begun.t, entry.partial)
            if entry.partial and len(entry.text) < LOOK and len(halves) < WRITERS:
                halves[entry.source] = entry
            else:
                found.append(entry)
        return found
