"""One start of a server, record by record: what each means for milestones, bars, arguments, errors.

A second ``server_args=`` line after a server was lost or stopped is a new start in the same file: a new run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.advice import goes_on
from sgmon.analyse.log.bars import Frame, frames
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.error_lines import ErrorLines
from sgmon.analyse.log.errors import NEAR, Errors
from sgmon.analyse.log.first_cause import fatal
from sgmon.analyse.log.first_lines import begins_with, ends_torn_traceback, opens_traceback
from sgmon.analyse.log.lines import LOOK
from sgmon.analyse.log.prefix import Origin, epoch
from sgmon.analyse.log.ranks import Milestones
from sgmon.analyse.log.records import Record, fragments
from sgmon.analyse.log.run_arguments import RunArguments
from sgmon.analyse.log.run_bars import RunBars
from sgmon.analyse.log.run_ranks import RunRanks
from sgmon.analyse.log.run_remarks import RunRemarks
from sgmon.analyse.log.unresolved import unresolved_in
from sgmon.analyse.log.writers import Writers
from sgmon.model.log import Unresolved
from sgmon.servers import registry
from sgmon.servers.family import LogRules
from sgmon.text import safe

#: Lines at the beginning that are looked at in any case.
BEGINNING = 60
#: Lines after an exception while serving in which a further request may be served.
SERVED = 20


class Run(Struct):
    """Accumulates; ``run_state.state_of`` makes the immutable picture."""

    log: LogRules
    errors: Errors
    error_lines: ErrorLines
    milestones: Milestones
    bars: RunBars
    ranks: RunRanks
    given: RunArguments
    remarks: RunRemarks = field(default_factory=RunRemarks)
    unresolved: Unresolved | None = None
    noise: int = 0
    warnings: int = 0
    runs: int = 1
    first_line: int = 1
    unended: bool = False  # the start before this one
    when: float | None = None
    near: float | None = None  # tells the year of dates without one
    eager: int = BEGINNING  # so many of the next lines are looked at in any case
    own: bool = False  # a record of the server's own was there
    late: tuple[tuple[int, str], tuple[str, tuple[str, ...]]] | None = None  # known for so many moves

    @classmethod
    def begin(cls, log: LogRules, runs: int = 1, first_line: int = 1) -> Run:
        """Nothing read so far."""
        errors, milestones = Errors(log), Milestones(registry.get(log.family).phases)
        writers = Writers(log.heads) if log.heads is not None else None
        return cls(
            log,
            errors,
            ErrorLines(errors, milestones),
            milestones,
            RunBars(milestones, writers),
            RunRanks(log, milestones, writers),
            RunArguments(log),
            runs=runs,
            first_line=first_line,
        )

    @property
    def wants_every_line(self) -> bool:
        """Whether lines without any literal count too: in a traceback, after an error, at the beginning."""
        return bool(self.errors.opened or self.eager > 0 or self.given.cut or self.error_lines.is_unhealthy)

    @property
    def serving(self) -> bool:
        """Whether the start is over, so that milestones and bars say nothing."""
        return self.milestones.is_over

    def copy(self) -> Run:
        """To read the unfinished line with, at every look: what is immutable is shared."""
        errors, milestones = self.errors.copy(), self.milestones.copy()
        ranks = self.ranks.copy(milestones)
        return replace(
            self,
            errors=errors,
            error_lines=self.error_lines.copy(errors, milestones),
            milestones=milestones,
            bars=RunBars(milestones, ranks.writers, dict(self.bars.known)),
            ranks=ranks,
            given=replace(self.given),
            remarks=self.remarks.copy(),
        )

    def wants(self, rules: Iterable[Rule], special: bool) -> bool:
        """Whether a line with such literals must be looked at; one that is only known noise is counted here."""
        if special or self.wants_every_line:
            return True
        if all(rule.group == "noise" and not rule.unasked for rule in rules):
            self.noise += 1
            return False
        return not all(self.milestones.ignores(rule) for rule in rules)

    def skip(self, previous: str) -> None:
        """The text before the next looked-at line (a traceback's title may stand there)."""
        self.errors.previous = previous.rstrip("\r").rpartition("\r")[2][-400:]
        self.ranks.begun(previous)

    def writer(self, name: str) -> None:
        """Who wrote the next line: tracebacks of several writers may be interleaved."""
        self.errors.writer = name

    def line(
        self,
        number: int,
        text: str,
        rules: Iterable[Rule],
        seen_t: float | None,
        continued: bool = False,
        when: float | None = None,
        special: bool = True,
    ) -> None:
        """Take one line: all its frames and glued records. continued: what is left of a line half taken.

        when: seconds since the epoch, for records without a time. special: it may have a literal beside the rules'.
        """
        if self.given.cut and self.given.goes_on(text):
            return
        rules, text = tuple(rules), text.lstrip("^C") if text.startswith("^C") else text  # as a terminal shows Ctrl-C
        self.when = when
        self.eager -= self.eager > 0
        writer = self.errors.writer
        for fragment in fragments(text, self.log):
            self.errors.writer = writer
            self._record(number, fragment[:LOOK], rules, seen_t, special)
            self.errors.previous = fragment[-400:]
        self.errors.writer = writer
        if not continued and not text.strip() and self.errors.open is not None:
            self.errors.open.blank = True

    def moves(self, tail: str, number: int, seen_t: float) -> bool:
        """Whether the unterminated tail shows a bar that moved; its count is remembered with the time."""
        newest = frames(tail, self.log.bars)
        return self._frames(newest, number, seen_t, final=False) if newest else False

    def _record(self, number: int, text: str, rules: tuple[Rule, ...], seen_t: float | None, special: bool) -> None:
        record = Record(text, rules, self.log)
        where, body = record.where, record.body
        if record.request:
            self.errors.close()
            return
        if where.stamp:
            where.t = epoch(where.stamp, self.when if self.when is not None else self.near)
        if where.t is None:
            where.t = self.when
        pid = self.ranks.name(record) if self.ranks.writers is not None else ""
        if pid:
            self.errors.writer = f"{self.errors.writer} {pid}"
        where.rank = self.ranks.names.admitted(where.rank)
        if where.quoted:
            self.errors.writer = where.rank
        if record.bars:
            self._frames(record.bars, number, seen_t, final=True)
        if self.eager or self.errors.open is not None or record.errors:
            self._advice(record, number)
        if not self.own and begins_with(record, number, seen_t, self.errors, named=self.ranks.writers is not None):
            self.own, self.eager = True, 0
        block = self.errors.open
        if block is not None and block.head and block.head == text[: where.body]:
            where.source = ""  # each line of a traceback has the same head
        if block is not None and block.complete and record.follows_traceback:
            self.errors.close()
        if self.serving and (self.errors.open is not None or self.eager or self.error_lines.is_unhealthy):
            self._serves(record)
        if ends_torn_traceback(body, number, self.errors):
            self.errors.headless(number, text, seen_t, where.rank)
        if self.errors.open is not None and self.errors.continues(body, where):
            self.errors.in_block(number, body, record.errors, seen_t)
            if self.errors.interrupted_line is not None:
                self.error_lines.shut_down(self.errors.interrupted_line)
            self.remarks.take_clue(record.clue, number)
            for rule, match in record.milestones:
                if rule.rank_only and "n" in match.groupdict():
                    self._milestone(rule, match, number, where, seen_t)
            return
        self.noise += record.noise
        self.remarks.take_clue(record.clue, number)
        if record.cleanup:
            self.errors.clean_up(number, seen_t)
        if record.unasked is not None:
            self.error_lines.unasked = self.error_lines.unasked or (number, text, record.unasked, seen_t)
        for rule, match in record.milestones:
            self._milestone(rule, match, number, where, seen_t, text)
        errors = [] if record.noise else record.errors
        opens = special and opens_traceback(body, self.log)
        grades = ("root", "exception", "cut") if self.log.heads is not None else ("root", "exception")
        named = next((rule for rule in errors if rule.grade in grades), None) if opens else None
        for rule in errors:
            if rule is not named and self.error_lines.take(rule, number, text, body, where, seen_t):
                self.eager = max(self.eager, NEAR)
        if opens:
            self.errors.open_block(number, text, where, seen_t, named)
        elif not errors and not record.milestones and where.level in ("warning", "error") and where.source != "glog":
            self.warnings += 1
        if special:
            self.unresolved = unresolved_in(body, number, self.unresolved)
        if special and any(word in body for word in self.log.more):
            self.errors.context(body, where.rank)
            self.given.take_version(body, number)

    def _serves(self, record: Record) -> None:
        """After an exception that nobody announced, or a failed health check: another request that is served says
        that it was caught, and that the server answers again."""
        block, serves = self.errors.open, self.log.serves
        if serves is None or record.where.source not in ("own", "uvicorn"):
            return
        if block is not None and not block.fatal:
            self.errors.close()
            self.eager = max(self.eager, SERVED)
        if serves.search(record.body) and not (self.log.probe is not None and self.log.probe.search(record.text)):
            self.errors.progress("")
            self.error_lines.unhealthy_line = None

    def _advice(self, record: Record, number: int) -> None:
        """What the log itself says near an error: what helps, that it goes on, in which phase it was."""
        self.remarks.take_remedy(record.body, number)
        if record.where.source == "own" and record.where.level != "error" and goes_on(record.body):
            self.errors.survived(number)

    def _milestone(
        self,
        rule: Rule,
        match: re.Match[str],
        number: int,
        where: Origin,
        seen_t: float | None,
        text: str = "",
    ) -> None:
        if rule.name == "args":
            self._arguments(text, number)
        rank, inferred = where.rank, where.rank_inferred
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        if rule.rank_only and "n" in groups and not rank:
            rank = self._rank_of(groups["n"])
        elif where.source == "torch":
            rank = ""
        fields = tuple((name, safe(value, 1000)) for name, value in groups.items() if name not in ("what",))
        if rule.name == "shutdown":
            self.error_lines.shut_down(number)
            return
        rank = self.ranks.told(groups, where, rank, self.given.args)
        rank = self.ranks.names.admitted(rank)
        made = self.milestones.add(rule, number, rank, where.t, seen_t, fields, inferred)
        if made is not None:
            self.errors.progress(rank)

    def _arguments(self, text: str, number: int) -> None:
        lost = fatal(self.errors) is not None or self.error_lines.sigterm_line is not None
        if lost or self.milestones.ready_line is not None:
            self.begin_again(number)
        another = self.given.take(text)
        self.unended = self.unended or another
        self.milestones.eager = self.given.args is not None and self.given.args.disable_cuda_graph

    def begin_again(self, number: int) -> None:
        """Another start: what was read so far is of the one before. number: its first line."""
        fresh = Run.begin(self.log, self.runs + 1, number)
        fresh.near = self.near
        fresh.given = self.given.next_start(number)
        begun = self.given.args is not None or self.milestones.ready_line is not None
        fresh.unended = begun and fatal(self.errors) is None and self.error_lines.sigterm_line is None
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def _rank_of(self, number: str) -> str:
        block = self.errors.open
        if block is not None and re.search(rf"\bTP{number}$", block.rank):
            return block.rank
        return f"TP{number}"

    def _frames(self, frames: list[Frame], number: int, seen_t: float | None, final: bool) -> bool:
        """Take the bars of a line; whether one has moved. final: the line is whole. None counts while serving."""
        moved = False
        for frame in () if self.serving else frames:
            name = self.bars.name_of(frame)
            if not name:
                continue
            moved = self.bars.take(name, frame, number, seen_t, final) or moved
            if final:
                self.bars.pass_milestone(name, number, self.when, seen_t)
                self.errors.progress(None)
        return moved
