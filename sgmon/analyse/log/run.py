"""One start of a server, record by record: what each means for milestones, bars, arguments, errors.

A second ``server_args=`` line after a server was lost or stopped is a new start in the same file: a new run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log import catalogue
from sgmon.analyse.log.bars import Frame, frames
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.errors import CONSEQUENCE, NEAR, NOTICE, Candidate, Errors, header_exception
from sgmon.analyse.log.lines import LOOK
from sgmon.analyse.log.prefix import Origin, epoch, origin
from sgmon.analyse.log.ranks import Milestones
from sgmon.analyse.log.records import Record, exception_name, fragments, looks_like_traceback
from sgmon.analyse.log.writers import Writers
from sgmon.analyse.stacks.phase import phase_of_frames
from sgmon.model.log import Bar, LogError, LogState, Milestone, RankProgress
from sgmon.model.server import ServerArgs
from sgmon.model.stacks import Frame as StackFrame
from sgmon.servers import registry
from sgmon.servers.family import LogRules
from sgmon.text import clean, mask

#: Longest error text kept.
ERROR_TEXT = 1_000
#: Longest advice kept, and how many; lines at the beginning that are looked at in any case.
ADVICE_TEXT, LIMIT, BEGINNING = 300, 100, 60
#: Lines after a cause in which advice is for it.
FAR = 12
#: Phases that the outermost frames of any traceback prove.
_VAGUE = ("", "launch", "spawn")
_TP0 = re.compile(r"\bTP0\b")
#: the first rank, or one that may be it
_FIRST = re.compile(r"\bTP0\b|^pid\d")
_SURVIVED = re.compile(
    r"\bfall(?:ing|s)?[ -]?back\b|\bfallback\b|\bretry(?:ing)?\b|\bcontinu(?:e|ing) without\b|\binstead\b"
    r"|\bskipp(?:ed|ing)\b|\bignor(?:ed|ing)\b",
    re.I,
)
_DO = (
    r"(?:(?:try(?: to)?|set|us|increas|reduc|decreas|disabl|add|lower|install|upgrad|downgrad|specify|enabl|rais"
    r"|chang|pass)(?:e|ing)?\b)"
)
_REMEDY = re.compile(
    r"\bTo (?:work around|fix|resolve|avoid) th\w+|\b(?:[Pp]lease|[Tt]ry(?: to)?|[Cc]onsider|[Yy]ou can) "
    + _DO
    + r"|^\s*(?:\d+[.)]|[-*]) (?i:"
    + _DO
    + r")"
)
_GRAPH_PHASES = ("graphs", "draft_graphs")
_WEIGHT_PHASES = ("weights", "draft_weights")


class Run(Struct):
    """Accumulates; ``state`` makes the immutable picture."""

    log: LogRules
    errors: Errors
    milestones: Milestones
    bars: dict[str, Bar] = field(default_factory=dict)
    args: ServerArgs | None = None
    version: str = ""
    bind_error_line: int | None = None
    sigterm_line: int | None = None
    unhealthy_line: int | None = None
    noise: int = 0
    warnings: int = 0
    runs: int = 1
    first_line: int = 1
    pseudo: list[Milestone] = field(default_factory=list)
    when: float | None = None
    near: float | None = None  # tells the year of dates without one
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
        return cls(log, Errors(log), milestones, runs=runs, first_line=first_line, writers=writers)

    @property
    def wants_every_line(self) -> bool:
        """Whether lines without any literal count too: in a traceback, after an error, at the beginning."""
        return bool(self.errors.opened) or self.eager > 0 or bool(self.cut_args)

    @property
    def serving(self) -> bool:
        """Whether the start is over, so that milestones and bars say nothing."""
        return self.milestones.ready_line is not None or self.milestones.dummy_line is not None

    def copy(self) -> Run:
        """To read the unfinished line with, at every look: what is immutable is shared."""
        return replace(
            self,
            milestones=self.milestones.copy(),
            errors=self.errors.copy(),
            bars=dict(self.bars),
            pseudo=list(self.pseudo),
            writers=None if self.writers is None else self.writers.copy(),
        )

    def wants(self, rules: Iterable[Rule], special: bool) -> bool:
        """Whether a line with such literals must be looked at; one that is only known noise is counted here."""
        if special or self.wants_every_line:
            return True
        if all(rule.group == "noise" for rule in rules):
            self.noise += 1
            return False
        return not all(self.milestones.ignores(rule) for rule in rules)

    def skip(self, previous: str) -> None:
        """The text before the next looked-at line (a traceback's title may stand there)."""
        self.errors.previous = previous.rstrip("\r").rpartition("\r")[2][-400:]
        self.begun(previous)

    def begun(self, previous: str) -> None:
        """What stands before, in the same line or the one above: a name alone tells whose bar follows."""
        if self.writers is None or " pid=" not in previous:
            return
        where = origin(previous, self.log)
        if where.pid and not previous[where.body :].strip():
            renamed = self.writers.name(where)
            if renamed is not None:
                self.milestones.rename(*renamed)
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

    def state(self, base: LogState) -> LogState:
        """``base`` (path, lines, times) with everything that this run told."""
        stopped = self.sigterm_line
        fatal = self.errors.fatal(stopped)
        cause = self.errors.first_cause(stopped)
        ready = self.milestones.ready_line
        outcome = "unfinished"
        if fatal is not None:
            outcome = "crashed"
        elif ready is not None or self.milestones.dummy_line is not None:
            outcome = "ready"
            if self.unhealthy_line is not None and self.unhealthy_line > (ready or 0):
                outcome = "unhealthy"
        ranks, exceptions = self._ranks()
        phase, behind = self._phase(fatal, cause)
        last = self.milestones.last or self.milestones.fallback or self._fallback()
        return replace(
            base,
            version=self.version,
            args=self.args,
            phase=phase,
            reached=self.milestones.phase,
            behind=behind,
            outcome=outcome,
            last_milestone=last,
            milestones=tuple(self.milestones.found),
            ranks=ranks,
            failed_ranks=exceptions,
            bars=tuple(self.bars.values()),
            error=self._error(cause),
            complaints=self.errors.complaints(),
            survived=self._error(self.errors.overcome),
            fatal_line=fatal.line if fatal else None,
            ready_line=ready,
            http_up_line=self.milestones.http_up_line,
            bind_error_line=self.bind_error_line,
            dummy_health_line=self.milestones.dummy_line,
            sigterm_line=self.sigterm_line,
            gate_open=self.milestones.gate_open,
            warnings=self.warnings,
            errors=self.errors.errors,
            noise=self.noise,
            runs=self.runs,
            run_line=self.first_line,
        )

    def _behind(self) -> tuple[str, tuple[str, ...]]:
        """Ranks that others have left behind, and their phase."""
        known = catalogue.of(self.log)
        others = {made.name for made in self.milestones.found if made.rank and not _FIRST.search(made.rank)}
        loud = not known.filtered.isdisjoint(others)

        def prints(name: str, rank: str) -> bool:
            if (loud and name in known.filtered) or (name in others and name in known.said_once):
                return True
            full = rank if "TP" in rank or rank.startswith("pid") else f"{rank} TP0"
            return not known.silent_by_design(self.version, name, full)

        return self.milestones.behind(prints)

    def _phase(self, fatal: Candidate | None, cause: Candidate | None) -> tuple[str, tuple[str, ...]]:
        """The phase of the ranks that are behind, and those ranks; of a crash what its cause proves."""
        key = (self.milestones.moves, self.version)
        if self.late is None or self.late[0] != key:
            self.late = (key, self._behind())
        now = self.milestones.phase
        phase, behind = self.late[1]
        phase = phase or now
        if fatal is None or cause is None:
            return phase or (cause.phase if cause is not None else ""), behind
        own = self.milestones.tracks.get(cause.rank)
        by_rank = own.phase if own is not None and cause.rank else ""
        proven = phase_of_frames(cause.frames, registry.get(self.log.family).stacks) if cause.frames else ""
        if proven in _VAGUE:
            proven = ""
        elif proven in ("scheduler_ready", "warmup"):  # the loop of a rank: the log tells whether it serves
            proven = now if self.milestones.ready_line is None and now in ("http", "warmup", "serving") else "serving"
        clue = next((phase for line, phase in self.clues if line == cause.line), "")
        return proven or cause.phase or by_rank or clue or phase, behind

    def _record(self, number: int, text: str, rules: tuple[Rule, ...], seen_t: float | None, special: bool) -> None:
        record = Record(text, rules, self.log)
        where, body = record.where, record.body
        if where.stamp:
            where.t = epoch(where.stamp, self.when if self.when is not None else self.near)
        if where.t is None:
            where.t = self.when
        if self.writers is not None:
            self._writer_of(record, self.writers)
        if where.quoted:
            self.errors.writer = where.rank
        if record.bars:
            self._frames(record.bars, number, seen_t, final=True)
        if self.eager or self.errors.open is not None or record.errors:
            self._advice(record, number)
        if not self.own:
            self._first_lines(record, number, seen_t)
        block = self.errors.open
        if block is not None and block.head and block.head == text[: where.body]:
            where.source = ""  # each line of a traceback has the same head
        if self.errors.open is not None and self._ends(record):
            self.errors.close()
        if self.errors.open is not None and self.errors.continues(body, where):
            self.errors.in_block(number, body, record.errors, seen_t)
            if record.clue:
                self.clues.append((number, record.clue))
            for rule, match in record.milestones:
                if rule.rank_only and "n" in match.groupdict():
                    self._milestone(rule, match, number, where, seen_t)
            return
        self.noise += record.noise
        if record.clue:
            self.clues.append((number, record.clue))
        if record.cleanup:
            self.errors.clean_up(number, seen_t)
        for rule, match in record.milestones:
            self._milestone(rule, match, number, where, seen_t, text)
        errors = [] if record.noise else record.errors
        opens = special and self._opens(body)
        grades = ("root", "exception", "cut") if self.log.heads is not None else ("root", "exception")
        named = next((rule for rule in errors if rule.grade in grades), None) if opens else None
        for rule in errors:
            if rule is not named:
                self._error_line(rule, number, text, body, where, seen_t)
        if opens:
            self.errors.open_block(number, text, where, seen_t, named)
        elif not errors and not record.milestones and where.level in ("warning", "error") and where.source != "glog":
            self.warnings += 1
        if special and any(word in body for word in self.log.more):
            self.errors.context(body, where.rank)
            version = self.log.version.search(body[:4000])
            self.version = self.version or (clean(version[1]) if version else "")

    def _opens(self, body: str) -> bool:
        """Whether a traceback begins here, or the line names the exception itself."""
        if "Traceback (most recent call last)" in body or body.startswith("Fatal Python error"):
            return True
        return bool(self.log.fatal_header.search(body)) and (
            self.log.heads is not None or bool(header_exception(body))
        )

    def _advice(self, record: Record, number: int) -> None:
        """What the log itself says near an error: what helps, that it goes on, in which phase it was."""
        advice = _REMEDY.search(record.body) if len(self.remedies) < LIMIT else None
        if advice is not None:
            self.remedies.append((number, clean(mask(record.body[advice.start() :].strip()), ADVICE_TEXT)))
        if record.where.source == "own" and record.where.level != "error" and _SURVIVED.search(record.body):
            self.errors.survived(number)

    def _first_lines(self, record: Record, number: int, seen_t: float | None) -> None:
        """An excerpt may begin inside of a traceback."""
        where, body = record.where, record.body
        cut = where.body and body[:1].isspace() and (where.level == "error" or looks_like_traceback(body))
        if self.writers is not None and cut and not self.errors.blocks:
            self.errors.headless(number, record.text, seen_t, where.rank, record.text[: where.body])
        if record.where.source == "own":
            self.own, self.eager = True, 0
            return
        inside = self.errors.open is None and not self.errors.blocks and self.errors.previous[:1].isspace()
        if inside and number > 1 and exception_name(record.body):
            self.errors.headless(number, record.text, seen_t)

    def _ends(self, record: Record) -> bool:
        """Whether a record without a prefix is the server's own word after a traceback, no part of it."""
        if self.errors.open is None or not self.errors.open.complete:
            return False
        own = any(rule.grade == "consequence" for rule in record.errors)
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
        told = tuple((name, clean(mask(value), 1000)) for name, value in groups.items() if name not in ("what",))
        if rule.name == "shutdown":
            self.sigterm_line = self.sigterm_line or number
            return
        if self.writers is not None:
            rank = self._numbers(groups, where, rank)
        made = self.milestones.add(rule, number, rank, where.t, seen_t, told, inferred)
        if made is not None:
            self.errors.progress()

    def _writer_of(self, record: Record, writers: Writers) -> None:
        """The rank of a line that begins with a name and a pid, and whose traceback or bar it is part of."""
        where = record.where
        if not where.body or not (where.pid or where.stamp or where.t is not None):
            return
        renamed = writers.name(where)
        if renamed is not None:
            self.milestones.rename(*renamed)
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
        if groups.get("rank", "").isdigit() and groups.get("world", "").isdigit():
            renamed = self.writers.told(where, int(groups["rank"]), int(groups["world"]), self.args)
            if renamed is not None:
                self.milestones.rename(*renamed)
            return where.rank
        return rank

    def _arguments(self, text: str, number: int) -> None:
        lost = self.errors.fatal(None) is not None or self.sigterm_line is not None
        if lost or self.milestones.ready_line is not None:
            self._begin_again(number)
        self.args = self.log.args(text) or self.args
        self.cut_args = "" if text.rstrip().endswith((")", "}")) else text
        self.milestones.eager = self.args is not None and self.args.disable_cuda_graph

    def _more_arguments(self, text: str) -> bool:
        """Whether this line goes on with the arguments of the one before."""
        if self.log.record.match(text) or len(self.cut_args) > LOOK:
            self.cut_args = ""
            return False
        whole = self.cut_args + text
        self.args = self.log.args(whole) or self.args
        self.cut_args = "" if text.rstrip().endswith((")", "}")) else whole
        return True

    def _begin_again(self, number: int) -> None:
        fresh = Run.begin(self.log, self.runs + 1, number)
        fresh.near = self.near
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
        self.pseudo.append(Milestone(name, event, "", number, rank, where.t, seen_t))

    def _frames(self, frames: list[Frame], number: int, seen_t: float | None, final: bool) -> bool:
        moved = False
        if self.serving:
            return moved  # a bar while serving (re-capture) is no start
        for frame in frames:
            name = self._bar_name(frame)
            if not name:
                continue
            known = self.bars.get(name)
            finished = frame.total > 0 and frame.done >= frame.total
            if known is not None and (known.done, known.total) == (frame.done, frame.total):
                moved_t = known.moved_t
            else:
                moved_t, moved = seen_t, True
            if final:
                owner = self.writers.owner if self.writers is not None else None
                rank = owner if owner is not None else self.milestones.bar_rank(name)
            else:
                rank = known.rank if known else None
            self.bars[name] = Bar(
                name,
                frame.done,
                frame.total,
                number,
                clean(mask(frame.text), 200),
                rank or "",
                seen_t,
                moved_t,
                finished,
            )
            if final:
                self._bar_milestone(name, finished, number, seen_t, rank)
        return moved

    def _bar_milestone(self, name: str, finished: bool, number: int, seen_t: float | None, rank: str | None) -> None:
        draft = "draft_" if name.startswith("draft_") else ""
        bare = name.removeprefix("draft_")
        phase = {"weights_progress": "weights", "graph_progress": "graphs", "weights_quant": "weights"}.get(bare, "")
        shown = "weights_100" if bare == "weights_progress" and finished else bare
        made = Milestone(
            draft + shown,
            "progress",
            draft + phase if phase else "",
            number,
            rank or "",
            self.when,
            seen_t,
        )
        self.milestones.bar(made, rank)
        self.errors.progress()

    def _bar_name(self, frame: Frame) -> str:
        name = frame.name
        phase = self.milestones.phase
        if not name:
            if frame.described:
                return ""
            if phase in _GRAPH_PHASES or "graph_begin" in self.milestones.seen:
                name = "graph_progress"
            elif phase in _WEIGHT_PHASES:
                name = "weights_progress" if "weights_100" not in self.milestones.seen else ""
            if not name:
                return ""
        if name == "weights_progress" and self.milestones.drafting:
            return "draft_weights_progress"
        if name == "graph_progress" and phase == "draft_graphs":
            return "draft_graph_progress"
        return name

    def _ranks(self) -> tuple[tuple[RankProgress, ...], tuple[str, ...]]:
        """Last milestone per rank; "exception" for a rank that raised, unless all did (then the place tells more)."""
        if self.writers is not None:
            return self._named_ranks(self.writers)
        blocks = [block.rank for block in self.errors.blocks if block.rank]
        progress = {rank.rank: rank for rank in self.milestones.progress(blocks)}
        raised: dict[str, RankProgress] = {}
        for block in self.errors.blocks:
            if block.rank and not block.cancelled and block.rank not in raised:
                raised[block.rank] = RankProgress(block.rank, "exception", block.line, seen_t=block.seen_t)
        weak: dict[str, RankProgress] = {}
        for made in self.pseudo:
            if not made.rank:
                continue
            entry = RankProgress(made.rank, made.name, made.line, "", made.t, made.seen_t)
            if made.event == "raised":
                raised.setdefault(made.rank, entry)
            elif made.name == "store_lost" or made.rank not in weak:
                weak[made.rank] = entry
        known = [rank for rank in progress if rank]
        if len(known) > 1 and all(rank in raised for rank in known):
            return tuple(progress.values()), tuple(raised)
        for rank, entry in raised.items():
            old = progress.get(rank)
            if old is None or old.line < entry.line:
                progress[rank] = replace(entry, phase=old.phase if old else "")
        for rank, entry in weak.items():
            named = self._as_tp(rank, progress)
            if named not in progress:
                progress[named] = replace(entry, rank=named)
        many = self.args is not None and self.args.tp * self.args.dp * self.args.pp > 1
        if len(progress) > 1 or many:
            progress.pop("", None)
        return tuple(progress.values()), tuple(raised)

    def _named_ranks(self, writers: Writers) -> tuple[tuple[RankProgress, ...], tuple[str, ...]]:
        """The same where each line says who writes: a failed rank keeps its last milestone."""
        raised = [block.rank for block in self.errors.blocks if block.rank and not block.cancelled]
        progress = [made for made in self.milestones.progress() if not writers.is_engine(made.rank)]
        if writers.nameless_first and not any(_TP0.search(made.rank) for made in progress):
            first = self.milestones.of_rank("", "TP0")
            progress = [*([first] if first is not None else []), *(made for made in progress if made.rank)]
        if len(progress) > 1:
            progress = [made for made in progress if made.rank]
        failed = (rank for rank in raised if not writers.is_engine(rank))
        return tuple(progress), tuple(dict.fromkeys(failed))

    def _as_tp(self, rank: str, known: Iterable[str]) -> str:
        """ "rank3" -> "TP3" if the log knows that rank so (torch counts the same ranks)."""
        if not rank.startswith("rank"):
            return self.log.rank(rank) or rank
        return next((name for name in known if re.search(rf"\bTP{rank[4:]}$", name)), rank)

    def _fallback(self) -> Milestone | None:
        """Where no milestone is in the text: the error that takes its place."""
        if self.writers is not None:
            return None
        blocks = [
            Milestone("exception", "error", "", b.line, b.rank, None, b.seen_t)
            for b in self.errors.blocks
            if b.fatal and not b.cancelled
        ]
        raised = sorted([*blocks, *(m for m in self.pseudo if m.name == "exception")], key=lambda m: m.line)
        if raised:
            return raised[0]
        lost = [made for made in self.pseudo if made.name == "store_lost"]
        if lost:
            return lost[-1]
        return self.pseudo[0] if self.pseudo else None

    def _error(self, cause: Candidate | None) -> LogError | None:
        if cause is None:
            return None
        rank = cause.rank if not cause.rank.startswith("#") else f"TP{cause.rank[1:]}"
        known = {rank.rank for rank in self.milestones.progress()}
        if self.writers is not None and rank in self.writers.engines and (self.args is None or self.args.dp < 2):
            rank = rank if len(self.writers.engines) > 1 else ""
        if cause.rank.startswith("#") and rank not in known:
            rank = f"scheduler_{cause.rank[1:]}" if cause.kind == "subprocess_died" else ""
        advice = next((text for line, text in self.remedies if cause.line <= line <= cause.line + FAR), "")
        text = clean(mask(cause.text.strip()), ERROR_TEXT)
        name = exception_name(text)
        return LogError(
            cause.kind,
            cause.line,
            text,
            rank,
            cause.seen_t,
            advice,
            exception=name,
            message=text.partition(":")[2].strip() if name else "",
            code=clean(mask(cause.code), ERROR_TEXT),
            place=_place(cause.frames),
            file=clean(mask(cause.file), ERROR_TEXT),
        )


def _place(stack: tuple[StackFrame, ...]) -> str:
    """ "function (file.py:12)": the innermost frame outside of the standard library; "" without one."""
    for frame in stack:
        if "/lib/python" not in frame.file or "-packages/" in frame.file:
            return clean(f"{frame.function} ({frame.file.rsplit('/', 1)[-1]}:{frame.line})", 100)
    return ""
