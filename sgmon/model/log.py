"""The log: raw readings as the probe sees them, and what they fold to."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.server import ServerArgs


class LogReading(Struct, frozen=True):
    """New text of the log file, not yet cut into lines (decoded, invalid bytes replaced, NULs kept).

    change: "" | "missing" | "appeared" | "rotated" | "truncated" | "deleted" | "unreadable" | "skipped" | "ended".
    "skipped": the tail began late; ``offset`` bytes before it were not read. "ended": the input or the command that
    brought the text has ended, and ``note`` says how. The text is as it was written: a container runtime's file and
    journalctl's output have an envelope around each line. path: a file, the command that prints the log, or "-".
    """

    path: str
    identity: str = ""  # "device:inode"
    offset: int = 0
    text: str = ""
    size: int | None = None
    kind: str = "file"  # file | deleted | command | stdin | pipe | pty | socket | null
    change: str = ""
    age_s: float | None = None  # of what was there before the watch: now - mtime; None: written while we looked
    undated: bool = False  # it came first through a pipe, and nothing tells when it was written: age_s is None
    writer_offset: int | None = None  # pos of fd 1/2 in the writer's fdinfo
    note: str = ""
    ends_earlier: bool = False  # all text up to the end of this one was written before the server began

    @property
    def is_part(self) -> bool:
        """Whether more of the text that is there follows at once."""
        if self.size is None:
            return False
        return self.offset + len(self.text.encode("utf-8", "replace")) + 4 < self.size  # 4: of a cut character


class LogLine(Struct, frozen=True):
    """One line, cleaned for display. number counts from 1; t is the wall-clock epoch in its prefix, if any.

    node: who wrote it, where the logs of several are one text. body: where the words begin in ``text``, behind
    the prefixes of the log and of its wrapper; 0: it has none, or it is not known where it ends.
    """

    number: int
    text: str
    rank: str = ""
    t: float | None = None
    level: str = ""  # "" | info | warning | error
    kind: str = ""  # "" | milestone | bar | error | traceback | noise | access
    milestone: str = ""
    node: str = ""
    body: int = 0


class Milestone(Struct, frozen=True):
    """A milestone seen in the log. name as in docs (load_begin, kv_alloc ...), phase likewise; t epoch or None."""

    name: str
    event: str
    phase: str
    line: int
    rank: str = ""
    t: float | None = None
    seen_t: float | None = None
    fields: tuple[tuple[str, str], ...] = ()


class RankProgress(Struct, frozen=True):
    """The last milestone of one rank. event: begin | info | end."""

    rank: str
    milestone: str
    line: int
    phase: str = ""
    t: float | None = None
    seen_t: float | None = None
    event: str = ""


_BAR_LABELS = {"weights_progress": "weight shards", "graph_progress": "graph batches"}


class Bar(Struct, frozen=True):
    """A tqdm bar, its newest state. name: weights_progress, graph_progress ... done/total are counts."""

    name: str
    done: int
    total: int
    line: int
    text: str = ""
    rank: str = ""
    seen_t: float | None = None
    moved_t: float | None = None
    finished: bool = False

    @property
    def label(self) -> str:
        """ "weight shards": the name on the screen and in lines of progress."""
        return _BAR_LABELS.get(self.name, self.name.replace("_", " "))


class LogError(Struct, frozen=True):
    """The first cause that the log names. kind as in docs (oom_cuda, port_in_use ...).

    exception, message: of a traceback's last line; "" where the cause is no exception. code: the source line that
    raised it; place: "function (file.py:12)", the innermost frame that is not the standard library's. file: a file
    that it, or a later exception of the same chain, names.
    """

    kind: str
    line: int
    text: str
    rank: str = ""
    seen_t: float | None = None
    advice: str = ""  # what the log itself says would help
    exception: str = ""
    message: str = ""
    code: str = ""
    place: str = ""
    file: str = ""


class Complaint(Struct, frozen=True):
    """An error line, of whatever grade. grade: root | exception | killed | victim | cut | consequence | cleanup (the
    server ends its own processes). rank: who wrote it, "" for the launcher or an only rank. pid, index: the process
    that it says has died, by its pid or its place among the launcher's workers; None: it says of none. by: the pid in
    the line's own prefix; None: it has none."""

    kind: str
    grade: str
    line: int
    rank: str = ""
    seen_t: float | None = None
    pid: int | None = None
    index: int | None = None
    signalled: bool = False  # it says that the process died of a signal
    signal: int | None = None  # which one; None: it does not say
    text: str = ""
    by: int | None = None


class QuietGap(Struct, frozen=True):
    """Silence between two dated lines, in seconds."""

    s: float
    after_line: int


class Unresolved(Struct, frozen=True):
    """A name that the ranks look for and the resolver does not know. words: the resolver's ("Name or service not
    known"); line: the first that says so; times: how often it was said."""

    host: str
    port: int
    words: str
    line: int
    times: int = 1


class LogPart(Struct, frozen=True):
    """One of several servers in a text. name: who wrote its lines, as the envelope has it."""

    name: str
    state: LogState


#: ranks of one log that are told apart; more are a log that lies, or numbers that are no ranks
MOST_RANKS = 2_048


class LogState(Struct, frozen=True):
    """Everything that the log has told so far. Lines themselves are in the log index, not here."""

    family: str = ""  # whose rules it was read with
    path: str = ""
    kind: str = ""
    change: str = ""
    size: int | None = None
    lines: int = 0
    first_t: float | None = None
    last_t: float | None = None
    #: what the clock of its lines, read as local time, showed at watch second 0: the greatest value of all readings,
    #: for a line may be read late but not before it is written
    clock_zero: float | None = None
    last_line: LogLine | None = None
    last_byte_t: float | None = None  # when the file last grew (watch seconds)
    last_activity_t: float | None = None  # same, our own probes' lines left out
    undated_t: float | None = None  # what was read up to then is of unknown age (``LogReading.undated``)
    version: str = ""
    args: ServerArgs | None = None
    phase: str = ""  # of the ranks that are behind, or that crashed
    reached: str = ""  # the phase under way after the last milestone, of whichever rank
    behind: tuple[str, ...] = ()  # ranks in ``phase``; others are past it, or further in it
    last_milestone: Milestone | None = None
    milestones: tuple[Milestone, ...] = ()
    ranks: tuple[RankProgress, ...] = ()
    bars: tuple[Bar, ...] = ()
    error: LogError | None = None
    complaints: tuple[Complaint, ...] = ()  # the first ones, by line
    survived: LogError | None = None  # an error after which the server said that it goes on
    ready_line: int | None = None
    ready_by_work: bool = False  # that line tells of work on requests; the ready line itself was not read
    http_up_line: int | None = None
    bind_error_line: int | None = None
    dummy_health_line: int | None = None
    unresolved: Unresolved | None = None  # the last one
    sigterm_line: int | None = None
    interrupted_line: int | None = None  # the traceback of a Ctrl-C
    longest_gap: QuietGap | None = None
    warnings: int = 0
    errors: int = 0
    noise: int = 0
    note: str = ""
    outcome: str = "unfinished"  # from the text alone: ready | unhealthy | crashed | unfinished
    failed_ranks: tuple[str, ...] = ()  # ranks that raised
    ranks_left_out: bool = False  # it names more than ``MOST_RANKS``
    gate_open: bool | None = None  # a launch that waits for activation: True once it was given; None: no such launch
    what: str = ""  # where it is no server's log: what it is, in words
    doing: str = ""  # and what its last lines say
    engines: tuple[LogPart, ...] = ()  # several servers in one text; everything else is of the worst
    runs: int = 1  # starts in this file; everything here is of the last one
    run_line: int = 1  # where it begins
    unended: bool = False  # the start before it has no end in this file, so that it may still write

    @property
    def run_lines(self) -> int:
        """Lines of the last start in this file."""
        return max(0, self.lines - self.run_line + 1)

    @property
    def stopped_by(self) -> str:
        """What its stop in ``sigterm_line`` was; "" where nobody stopped it."""
        if self.sigterm_line is None:
            return ""
        return "Ctrl-C" if self.interrupted_line == self.sigterm_line else "SIGTERM"

    def is_dated(self, seen_t: float | None) -> bool:
        """Whether text that was read at ``seen_t`` is known to be of then, not older by nobody knows how much."""
        return self.undated_t is None or seen_t is None or seen_t > self.undated_t

    @property
    def activity_is_dated(self) -> bool:
        """The same of its last activity."""
        return self.is_dated(self.last_activity_t)

    @property
    def left_out_words(self) -> str:
        """What is said of ranks that are not told apart; "" where all are."""
        return f"more than {MOST_RANKS:,} ranks are named: the others are left out" if self.ranks_left_out else ""
