"""A log folded to what it told: milestones per rank, bars, arguments, the first cause of failure, gaps. Incremental.

Lines are ``\\n`` lines, counted from 1 as an editor or ``wc -l`` counts them; the frames of a bar between ``\\r``
have the number of the line that they are in. Any chunking of the same text folds to the same state: whole lines
(and the frames that a ``\\r`` ends) are folded for good, the unterminated tail is folded anew at every look.

Which family wrote it and what stands around its lines is learned from the text; what is learned late is applied to
the beginning too, which is read again.

Speed: only lines that have a literal of the catalogue are looked at, and ``shapes`` knows most lines already.
"""

from __future__ import annotations

from sgmon.analyse.log.envelope import BARE_COLOUR, Envelope, uncoloured
from sgmon.analyse.log.fold_state import state_so_far
from sgmon.analyse.log.language import choose
from sgmon.analyse.log.lines import LOOK
from sgmon.analyse.log.log_so_far import LearnedError, LogSoFar
from sgmon.analyse.log.other_texts import named
from sgmon.analyse.log.own_probe import echo_s, is_activity
from sgmon.analyse.log.plain_lines import fold_plain
from sgmon.analyse.log.run import Run
from sgmon.analyse.log.wrapped_lines import fold_wrapped
from sgmon.model.log import LogReading, LogState
from sgmon.servers import registry
from sgmon.servers.family import LogRules

#: Longest unterminated tail kept; what is longer is a dump, and only its beginning is read.
TAIL = LOOK + 1
#: Characters after which the family is decided, known or not.
CHOICE = 65_536
#: Characters from the beginning that are kept, to be read again when something is learned.
EARLY = 1 << 18


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
        except LearnedError:
            self._again()
        if self._early_size > EARLY:
            self._early = None

    def _choose(self) -> None:
        before = sum(len(reading.text) for reading, _ in (self._early or ())[:-1])
        if self._early is None or (self._known is not None and before > CHOICE):
            return
        beginning = uncoloured("".join(reading.text[:CHOICE] for reading, _ in self._early))
        self._known = choose(beginning, self._given) or self._known
        if self._known is not None and self._known is not self._rules:
            self._rules, self._envelope = self._known, Envelope(self._known)
            raise LearnedError

    def _again(self) -> None:
        """Read the beginning again; each time something more is known, and that is limited."""
        while True:
            self._log = LogSoFar(Run.begin(self._rules))
            try:
                for reading, t in self._early or ():
                    self._feed(reading, t)
                return
            except LearnedError:
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
        state = state_so_far(self._log, self._envelope, known=self._known is not None)
        if state.milestones or self._early is None:
            return state
        beginning = "".join(reading.text[:CHOICE] for reading, _ in self._early)[:CHOICE]
        return named(state, uncoloured(beginning), self._rules)

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
                raise LearnedError
        if self._envelope.plain:
            fold_plain(self._log, text, t)
        else:
            fold_wrapped(self._log, self._envelope, text, t, early=self._early is not None)
