"""One start of a server, record by record: what each means for milestones, bars, arguments, errors.

A second ``server_args=`` line after a server was lost or stopped is a new start in the same file: a new run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.advice import goes_on, remedy_in
from sgmon.analyse.log.bars import Frame, frames
from sgmon.analyse.log.candidates import CONSEQUENCE, NOTICE
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.errors import NEAR, Errors
from sgmon.analyse.log.first_lines import begins_with, opens_traceback
from sgmon.analyse.log.lines import LOOK
from sgmon.analyse.log.prefix import Origin, epoch, origin
from sgmon.analyse.log.ranks import Milestones
from sgmon.analyse.log.records import Record, exception_name, fragments
from sgmon.analyse.log.run_bars import RunBars
from sgmon.analyse.log.unresolved import unresolved_in
from sgmon.analyse.log.writers import RankNames, Writers
from sgmon.model.log import Milestone, Unresolved
from sgmon.model.server import ServerArgs
from sgmon.servers import registry
from sgmon.servers.family import LogRules
from sgmon.text import clean, safe

#: How much advice is kept; lines at the beginning that are looked at in any case.
LIMIT, BEGINNING = 100, 60
#: Lines after an exception while serving in which a further request may be served.
SERVED = 20
#: Lines before its arguments in which a start says its version.
SAID_BEFORE = 3
#: error lines, and clues in lines, that are kept: the first ones
NOTED = 4_000


class Run(Struct):
    """Accumulates; ``run_state.state_of`` makes the immutable picture."""

    log: LogRules
    errors: Errors
    milestones: Milestones
    bars: RunBars
    args: ServerArgs | None = None
    version: str = ""
    told: tuple[int, str] = (0, "")  # where a version was told last
    bind_error_line: int | None = None
    sigterm_line: int | None = None
    unresolved: Unresolved | None = None
    unasked: tuple[int, str, Rule, float | None] | None = None  # what is an error if a shutdown follows
    unhealthy_line: int | None = None
    noise: int = 0
    warnings: int = 0
    runs: int = 1
    first_line: int = 1
    unended: bool = False  # the start before this one
    pseudo: list[Milestone] = field(default_factory=list)
    when: float | None = None
    near: float | None = None  # tells the year of dates without one
    names: RankNames = field(default_factory=RankNames)
    writers: Writers | None = None  # of a family whose lines begin with their names
    eager: int = BEGINNING  # so many of the next lines are looked at in any case
    cut_args: str = ""  # the arguments' line as far as it goes, where another program has wrapped it
    own: bool = False  # a record of the server's own was there
    remedies: list[tuple[int, str]] = field(default_factory=list)
    clues: list[tuple[int, str]] = field(default_factory=list)
    late: tuple[tuple[int, str], tuple[str, tuple[str, ...]]] | None = None  # known for so many moves

    @classmethod
    def begin(cls, log: LogRules, runs: int = 1, first_line: int = 1) -> Run:
        """Nothing read so far."""
        milestones = Milestones(registry.get(log.family).phases)
        writers = Writers(log.heads) if log.heads is not None else None
        bars = RunBars(milestones, writers)
        return cls(log, Errors(log), milestones, bars, runs=runs, first_line=first_line, writers=writers)

    @property
    def wants_every_line(self) -> bool:
        """Whether lines without any literal count too: in a traceback, after an error, at the beginning."""
        return bool(self.errors.opened) or self.eager > 0 or bool(self.cut_args) or self.unhealthy_line is not None

    @property
    def serving(self) -> bool:
        """Whether the start is over, so that milestones and bars say nothing."""
        return self.milestones.ready_line is not None or self.milestones.dummy_line is not None

    def copy(self) -> Run:
        """To read the unfinished line with, at every look: what is immutable is shared."""
        milestones = self.milestones.copy()
        writers = None if self.writers is None else self.writers.copy()
        return replace(
            self,
            milestones=milestones,
            errors=self.errors.copy(),
            bars=RunBars(milestones, writers, dict(self.bars.known)),
            pseudo=list(self.pseudo),
            writers=writers,
            names=self.names.copy(),
        )

    def wants(self, rules: Iterable[Rule], special: bool) -> bool:
        """Whether a line with such literals must be looked at; one that is only known noise is counted here."""
        if special or self.wants_every_line:
            return True
        if all(rule.group == "noise" and not rule.unasked for rule in rules):
            self.noise += 1
            return False
        return not all(self.milestones.ignores(rule) for rule in rules)

    def needs_only_the_last(self, rule: Rule) -> bool:
        """Whether of several lines of one writer with this weak milestone and nothing between them the last tells
        all: no more are kept, and no traceback is open."""
        plain = rule.weak and not (rule.once or rule.early_only or rule.rank_only or rule.gate)
        if not plain or not self.milestones.is_full or self.wants_every_line:
            return False
        return self.own and not self.serving

    def skip(self, previous: str) -> None:
        """The text before the next looked-at line (a traceback's title may stand there)."""
        self.errors.previous = previous.rstrip("\r").rpartition("\r")[2][-400:]
        self.begun(previous)

    def begun(self, previous: str) -> None:
        """What stands before, in the same line or the one above: a name alone tells whose bar follows."""
        if self.writers is None or " pid=" not in previous:
            return
        record = self.log.record.match(previous)
        if record is None or previous[record.end() :].strip():
            return
        where = origin(previous, self.log)
        if where.pid:
            renamed = self.writers.name(where)
            if renamed is not None:
                self._rename(*renamed)
            self.writers.owner = where.rank

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
        if self.cut_args and self._more_arguments(text):
            return
        rules = tuple(rules)
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
        if self.writers is not None:
            self._writer_of(record, self.writers)
        where.rank = self.names.admitted(where.rank)
        if where.quoted:
            self.errors.writer = where.rank
        if record.bars:
            self._frames(record.bars, number, seen_t, final=True)
        if self.eager or self.errors.open is not None or record.errors:
            self._advice(record, number)
        if not self.own and begins_with(record, number, seen_t, self.errors, named=self.writers is not None):
            self.own, self.eager = True, 0
        block = self.errors.open
        if block is not None and block.head and block.head == text[: where.body]:
            where.source = ""  # each line of a traceback has the same head
        if self.errors.open is not None and self._ends(record):
            self.errors.close()
        if self.serving and (self.errors.open is not None or self.eager or self.unhealthy_line is not None):
            self._serves(record)
        if self.errors.open is not None and self.errors.continues(body, where):
            self.errors.in_block(number, body, record.errors, seen_t)
            if record.clue:
                self._note_clue(number, record.clue)
            for rule, match in record.milestones:
                if rule.rank_only and "n" in match.groupdict():
                    self._milestone(rule, match, number, where, seen_t)
            return
        self.noise += record.noise
        if record.clue:
            self._note_clue(number, record.clue)
        if record.cleanup:
            self.errors.clean_up(number, seen_t)
        if record.unasked is not None:
            self.unasked = self.unasked or (number, text, record.unasked, seen_t)
        for rule, match in record.milestones:
            self._milestone(rule, match, number, where, seen_t, text)
        errors = [] if record.noise else record.errors
        opens = special and opens_traceback(body, self.log)
        grades = ("root", "exception", "cut") if self.log.heads is not None else ("root", "exception")
        named = next((rule for rule in errors if rule.grade in grades), None) if opens else None
        for rule in errors:
            if rule is not named:
                self._error_line(rule, number, text, body, where, seen_t)
        if opens:
            self.errors.open_block(number, text, where, seen_t, named)
        elif not errors and not record.milestones and where.level in ("warning", "error") and where.source != "glog":
            self.warnings += 1
        if special:
            self.unresolved = unresolved_in(body, number, self.unresolved)
        if special and any(word in body for word in self.log.more):
            self.errors.context(body, where.rank)
            version = self.log.version.search(body[:4000])
            if version:
                self.told = (number, clean(version[1]))
                self.version = self.version or self.told[1]

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
            self.unhealthy_line = None

    def _note_clue(self, number: int, phase: str) -> None:
        if len(self.clues) < NOTED:
            self.clues.append((number, phase))

    def _advice(self, record: Record, number: int) -> None:
        """What the log itself says near an error: what helps, that it goes on, in which phase it was."""
        advice = remedy_in(record.body) if len(self.remedies) < LIMIT else ""
        if advice:
            self.remedies.append((number, advice))
        if record.where.source == "own" and record.where.level != "error" and goes_on(record.body):
            self.errors.survived(number)

    def _ends(self, record: Record) -> bool:
        """Whether a record without a prefix is a word about the end after a traceback, no part of it."""
        if self.errors.open is None or not self.errors.open.complete:
            return False
        own = any(rule.grade == "consequence" or rule.shell for rule in record.errors)
        return own or any(not rule.rank_only for rule, _ in record.milestones)

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
            self._shutdown(number)
            return
        if self.writers is not None:
            rank = self._numbers(groups, where, rank)
        rank = self.names.admitted(rank)
        made = self.milestones.add(rule, number, rank, where.t, seen_t, fields, inferred)
        if made is not None:
            self.errors.progress(rank)

    def _writer_of(self, record: Record, writers: Writers) -> None:
        """The rank of a line that begins with a name and a pid, and whose traceback or bar it is part of."""
        where = record.where
        if not where.body or not (where.pid or where.stamp or where.t is not None):
            return
        renamed = writers.name(where)
        if renamed is not None:
            self._rename(*renamed)
        if where.pid:
            self.errors.writer = f"{self.errors.writer} {where.pid}"
        if not where.stamp and where.source == "own":
            where.source = ""  # printed, not logged: no more than an envelope
        if where.pid and (record.bars or not record.body.strip()):
            writers.owner = where.rank

    def _numbers(self, groups: dict[str, str], where: Origin, rank: str) -> str:
        """What a line tells of how many there are, and which one its writer is."""
        if self.writers is None:
            return rank
        if groups.get("servers", "").isdigit():
            self.milestones.servers = max(1, int(groups["servers"]))
            self.milestones.shared = self.milestones.servers > 1
        if groups.get("rank", "").isdigit() and groups.get("world", "").isdigit():
            renamed = self.writers.told(where, int(groups["rank"]), int(groups["world"]), self.args)
            if renamed is not None:
                self._rename(*renamed)
            return where.rank
        return rank

    def _rename(self, old: str, new: str) -> None:
        """What ``old`` said was said by the rank ``new``."""
        self.names.known.discard(old)
        if self.names.admitted(new):
            self.milestones.rename(old, new)

    def _arguments(self, text: str, number: int) -> None:
        lost = self.errors.fatal(None) is not None or self.sigterm_line is not None
        if lost or self.milestones.ready_line is not None:
            self.begin_again(number)
        before, found = self.args, self.log.args(text)
        self.unended = self.unended or (before is not None and found is not None and before.port != found.port)
        self.args = found or before
        self.cut_args = "" if text.rstrip().endswith((")", "}")) else text
        self.milestones.eager = self.args is not None and self.args.disable_cuda_graph

    def _shutdown(self, number: int) -> None:
        if self.sigterm_line is None and self.unasked is not None and self.errors.fatal(None) is None:
            line, text, rule, seen_t = self.unasked
            self.errors.single(line, text, "", rule, seen_t)
        self.sigterm_line = self.sigterm_line or number

    def _more_arguments(self, text: str) -> bool:
        """Whether this line goes on with the arguments of the one before."""
        if self.log.record.match(text) or len(self.cut_args) > LOOK:
            self.cut_args = ""
            return False
        whole = self.cut_args + text
        self.args = self.log.args(whole) or self.args
        self.cut_args = "" if text.rstrip().endswith((")", "}")) else whole
        return True

    def begin_again(self, number: int) -> None:
        """Another start: what was read so far is of the one before. number: its first line."""
        fresh = Run.begin(self.log, self.runs + 1, number)
        fresh.near = self.near
        if number - self.told[0] <= SAID_BEFORE:
            fresh.version = self.told[1]
        begun = self.args is not None or self.milestones.ready_line is not None
        fresh.unended = begun and self.errors.fatal(None) is None and self.sigterm_line is None
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def _rank_of(self, number: str) -> str:
        block = self.errors.open
        if block is not None and re.search(rf"\bTP{number}$", block.rank):
            return block.rank
        return f"TP{number}"

    def _error_line(self, rule: Rule, number: int, text: str, body: str, where: Origin, seen_t: float | None) -> None:
        if rule.name == "health_check_failed":
            self.unhealthy_line = number
        if rule.name == "port_in_use" and "attempting to bind" in body:
            self.bind_error_line = self.bind_error_line or number
        if self.milestones.ready_line is not None and rule.in_block and where.source == "":
            return  # an exception of a request, not of the server
        rank = where.rank if not where.rank_inferred else ""
        self.eager = max(self.eager, NEAR)
        self.errors.single(number, text, rank, rule, seen_t)
        if rule.closeness == NOTICE:
            return
        name = "error" if rule.closeness == CONSEQUENCE or rule.name == "killed_sigkill" else "exception"
        if rule.name == "tcpstore_lost":
            name = "store_lost"
        event = "raised" if exception_name(body) and where.source == "own" else "error"
        if len(self.pseudo) < NOTED:
            self.pseudo.append(Milestone(name, event, "", number, rank, where.t, seen_t))

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
