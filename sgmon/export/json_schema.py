"""The types of ``sgmon status --json`` and ``sgmon wait --json``; ``docs/status.schema.json`` is made from them.

An unknown value is null; ``missing`` says why. ``t`` and ``started`` are Unix seconds; names that end in ``_s`` are
durations in seconds. ``schema`` grows when a key goes or changes its meaning; new keys may come without that.
"""

from __future__ import annotations

import msgspec

#: 2: roles are neutral of the family of servers: ``worker`` was ``scheduler``, ``controller`` was ``dp_controller``
SCHEMA = 2


class Report(msgspec.Struct, frozen=True):
    """Base of all parts."""


class EvidenceReport(Report, frozen=True):
    """One fact that carries the verdict. signal: where it was read."""

    signal: str
    rank: str
    pid: int | None
    text: str
    value: float | str | None


class MissingReport(Report, frozen=True):
    """A signal that could not be read: why, and what would give it."""

    signal: str
    why: str
    remedy: str


class StepReport(Report, frozen=True):
    """What to do next. command: to be copied; may be empty."""

    text: str
    command: str


class CauseReport(Report, frozen=True):
    """An entry of the cause book that fits. confidence: 0..1, a judgement."""

    id: str
    title: str
    confidence: float
    ranks: tuple[str, ...]
    evidence: tuple[str, ...]
    advice: str
    command: str
    sources: tuple[str, ...]


class ServerReport(Report, frozen=True):
    """The watched server. family: its kind, a name of ``sgmon.servers``. argv: secrets masked. args_known:
    false while nothing has told its arguments; model to node_rank are null then. port_missing: why port is null."""

    family: str
    pid: int
    started: float | None
    version: str | None
    version_source: str
    model: str | None
    host: str | None
    port: int | None
    port_missing: str
    tp: int | None
    dp: int | None
    pp: int | None
    ep: int | None
    nnodes: int | None
    node_rank: int | None
    args_known: bool
    args_source: str
    argv: tuple[str, ...]


class ActivityReport(Report, frozen=True):
    """The newest sign of activity of a process that counts as progress."""

    signal: str
    age_s: float
    text: str


class WaitReport(Report, frozen=True):
    """What a rank waits in. kind: a ``WaitKind``. target: file, socket or lock. holder: pid that holds the lock."""

    kind: str
    text: str
    target: str
    holder: int | None


class RankReport(Report, frozen=True):
    """One essential process: a rank, the launcher, a controller ...

    role: neutral of the family; role_label: what the family calls it. state: the kernel's letter. rank_state: what it
    does (running, waiting, stopped, gone ...); null for a process that is no rank. milestone, phase: its own.
    last_sign_of_life: its newest sign of activity. node: where it runs, of several; "" on a single machine.
    """

    rank: str
    rank_inferred: bool
    role: str
    role_label: str
    pid: int
    state: str
    rank_state: str | None
    wait: WaitReport | None
    gone: bool
    exit_code: int | None
    exit_signal: int | None
    milestone: str | None
    phase: str | None
    cpu_percent: float | None
    read_bytes_s: float | None
    rss_anon_bytes: int | None
    rss_file_bytes: int | None
    wchan: str | None
    call: str | None
    call_target: str | None
    same_log: bool | None
    shards: int | None
    compilers: int
    last_sign_of_life: ActivityReport | None
    missing: tuple[MissingReport, ...]
    node: str = ""


class GpuProcessReport(Report, frozen=True):
    """A process that holds memory of a GPU. used_bytes null: the driver does not say."""

    pid: int
    rank: str
    name: str
    used_bytes: int | None


class GpuReport(Report, frozen=True):
    """One GPU. ranks_inferred: by its index, the driver does not name the process. error: why it does not answer.

    node: where it is, of several; "" on a single machine.
    """

    index: int
    name: str
    used_bytes: int | None
    total_bytes: int | None
    util_percent: int | None
    power_w: float | None
    temperature_c: int | None
    ranks: tuple[str, ...]
    ranks_inferred: bool
    error: str
    processes: tuple[GpuProcessReport, ...]
    node: str = ""


class ListenerReport(Report, frozen=True):
    """Who listens on the port. ours null: the owner could not be read."""

    address: str
    pid: int | None
    ours: bool | None
    name: str


class PortReport(Report, frozen=True):
    """The HTTP port. answer: refused, no_response, http, reset, timeout or skipped; status: of /health. port: null
    where it has no number, or none that is known: port_missing says why."""

    host: str
    port: int | None
    port_missing: str
    answer: str
    status: int | None
    latency_s: float | None
    listeners: tuple[ListenerReport, ...]
    text: str


class MilestoneReport(Report, frozen=True):
    """The last milestone in the log. t: Unix seconds by the log's own clock."""

    name: str
    line: int
    rank: str
    t: float | None


class BarReport(Report, frozen=True):
    """A progress bar in the log."""

    name: str
    done: int
    total: int | None


class ErrorReport(Report, frozen=True):
    """The first cause of a failure in the log."""

    kind: str
    line: int
    rank: str
    text: str


class LogReport(Report, frozen=True):
    """The server's log. kind: file, deleted, pipe, pty, socket, null. quiet_s: since its last activity, null
    where nothing tells when it was written (text that came at once through a pipe)."""

    path: str
    kind: str
    lines: int
    size_bytes: int | None
    quiet_s: float | None
    phase: str
    last_milestone: MilestoneReport | None
    bars: tuple[BarReport, ...]
    error: ErrorReport | None
    last_line: str | None
    note: str


class WatchDirReport(Report, frozen=True):
    """A folder of --watch-dir. cut: the numbers are of a part of it."""

    path: str
    files: int | None
    size_bytes: int | None
    used_bytes: int | None
    newest_age_s: float | None
    cut: bool
    note: str


class UsualMilestoneReport(Report, frozen=True):
    """The milestone that usually comes next: in which line, after how many seconds."""

    milestone: str
    line: int
    s: float


class UsualReport(Report, frozen=True):
    """What is usual for such a start on this machine. like: what those starts have in common with this one."""

    starts: int
    like: str
    ready_median_s: float | None
    ready_p90_s: float | None
    eta_s: float | None
    next: UsualMilestoneReport | None
    text: str


class ChangeReport(Report, frozen=True):
    """A change of the verdict. t: seconds since the watch began."""

    t: float
    state: str
    headline: str


class ForecastReport(Report, frozen=True):
    """What a rule says of the start: level "will-fail", "warning" or "unknown". why: the reason why it cannot go
    well; phase: where it will fail; both "" for other levels."""

    rule: str
    check: str
    level: str
    text: str
    why: str
    phase: str


class MemoryPlanReport(Report, frozen=True):
    """What a rank was expected to take of a GPU, in bytes, beside what the log says that it took (taken_*). null: not
    known. learned: from how many finished starts; 0: from the files alone. reserve_bytes: left for activations and
    CUDA graphs; share: of the memory, for weights and KV cache; share_from: "argument", "formula" or "default"."""

    gpu: int
    ranks: str
    free_bytes: int | None
    context_bytes: int | None
    weights_bytes: int | None
    kv_bytes: int | None
    kv_tokens: int | None
    reserve_bytes: int | None
    share: float | None
    share_from: str
    learned: int
    taken_weights_bytes: int | None
    taken_kv_bytes: int | None
    taken_graph_bytes: int | None


class NodeReport(Report, frozen=True):
    """One node of several. link: connecting, live, stale, lost, ended or failed; why: of a link that is not live.
    heard: its word is fresh; silent_s: for how long there was none. clock_offset_s: its clock minus ours, known to
    clock_error_s. state, phase, headline: what its own events say, without the other nodes. ranks: names."""

    name: str
    link: str
    why: str
    remedy: str
    heard: bool
    silent_s: float | None
    clock_offset_s: float | None
    clock_error_s: float | None
    round_trip_s: float | None
    hostname: str
    collector: str
    python: str
    bytes_per_s: float | None
    state: str
    phase: str
    headline: str
    ranks: tuple[str, ...]
    server: ServerReport | None
    port: PortReport | None
    log: LogReport | None


class ComparedReport(Report, frozen=True):
    """A version, flag or variable of all nodes. values: in the order of ``nodes``; null: not known, "": not given.
    differs: the values are not the same and should be."""

    kind: str
    name: str
    values: tuple[str | None, ...]
    differs: bool


class StatusReport(Report, frozen=True):
    """One look at a server. since_s: for how long this watch has seen the state.

    ready_after_s: how long the start took; null before it is ready, or where that is not known.

    forecasts: what is not ok, the worst first.

    gpus null: they cannot be read, ``gpu_note`` says why. usual null: no finished start to compare with.

    nodes: where several machines are watched; server, port and log are then those of node rank 0, and odd_nodes is
    where the culprit is. compared: versions, flags and environment side by side, those that differ first.
    """

    schema: int
    t: float
    server: ServerReport | None
    state: str
    phase: str
    since_s: float
    ready_after_s: float | None
    confidence: float
    headline: str
    rule: str
    odd_ranks: tuple[str, ...]
    evidence: tuple[EvidenceReport, ...]
    missing: tuple[MissingReport, ...]
    next: tuple[StepReport, ...]
    causes: tuple[CauseReport, ...]
    ranks: tuple[RankReport, ...]
    gpus: tuple[GpuReport, ...] | None
    gpu_note: str
    port: PortReport | None
    log: LogReport | None
    watch_dirs: tuple[WatchDirReport, ...]
    usual: UsualReport | None
    verdicts: tuple[ChangeReport, ...]
    forecasts: tuple[ForecastReport, ...]
    memory_plans: tuple[MemoryPlanReport, ...]
    nodes: tuple[NodeReport, ...] = ()
    odd_nodes: tuple[str, ...] = ()
    compared: tuple[ComparedReport, ...] = ()


class FailureText(Report, frozen=True):
    """Why there is nothing to report, and what to try."""

    text: str
    remedy: str


class FailureReport(Report, frozen=True):
    """Instead of a ``StatusReport``: there is no such process or server."""

    schema: int
    error: FailureText
