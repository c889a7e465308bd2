"""Event: what comes in. Snapshot: everything known now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from sgmon.model.baseline import Baseline
from sgmon.model.gpu import GpuReading
from sgmon.model.log import LogReading, LogState
from sgmon.model.port import PortReading
from sgmon.model.procs import ProcsReading
from sgmon.model.ras import RasReading
from sgmon.model.server import Candidate, Server, ServerReading
from sgmon.model.stacks import CauseHit, StackDump, StacksReading
from sgmon.model.start import StartReading
from sgmon.model.verdict import Verdict, VerdictChange
from sgmon.model.watchdir import WatchDirReading


@dataclass(frozen=True, slots=True)
class ProbeReading:
    """A probe about itself: it has been in one call since ``in_flight_since_t`` (None: it answered), or its error."""

    name: str
    in_flight_since_t: float | None = None
    error: str = ""
    remedy: str = ""


Reading = Union[
    ServerReading,
    ProcsReading,
    GpuReading,
    LogReading,
    PortReading,
    StacksReading,
    RasReading,
    ProbeReading,
    StartReading,
    Baseline,
    WatchDirReading,
]

#: kind of an event -> type of its reading (also what a recording may hold); "tick" has none
KINDS: dict[str, type] = {
    "server": ServerReading,
    "procs": ProcsReading,
    "gpu": GpuReading,
    "log": LogReading,
    "port": PortReading,
    "stacks": StacksReading,
    "ras": RasReading,
    "probe": ProbeReading,
    "start": StartReading,
    "baseline": Baseline,
    "watchdir": WatchDirReading,
}


@dataclass(frozen=True, slots=True)
class Event:
    """A reading or a failure. t: watch seconds when it was taken; took_s: how long it took."""

    t: float
    kind: str
    reading: Reading | None = None
    took_s: float | None = None


@dataclass(frozen=True, slots=True)
class ProbeStatus:
    """How a probe is doing; ages are computed from these and Snapshot.t."""

    name: str
    last_ok_t: float | None = None
    took_s: float | None = None
    in_flight_since_t: float | None = None
    error: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """One sign of life: which signal moved, how much (in words), when."""

    signal: str
    t: float
    text: str
    rate: float | None = None  # per second, in the signal's own unit


@dataclass(frozen=True, slots=True)
class ActivityClock:
    """Signs of life of one process (a rank, or the launcher), newest first; one mark per signal.

    Signals: log, bar, bytes, memory, gpu_memory, cpu, compiler, title, network, power, files.
    ``files`` (a watched folder grew) is noted for the launcher: which rank wrote is not known.
    ``cpu`` is kept apart: alone it proves nothing in a collective.
    """

    pid: int
    rank: str
    role: str
    since_t: float
    marks: tuple[Mark, ...] = ()
    read_rate: float | None = None  # bytes/s over the last 10 s
    rss_rate: float | None = None
    cpu_percent: float | None = None  # on-CPU share over the last 10 s, 100 = one core
    demand_percent: float | None = None  # on-CPU plus run-queue wait
    tree_cpu_percent: float | None = None  # descendants
    rchar_rate: float | None = None  # bytes/s over the last 10 s; a TCPStore poll shows as 3-4 KB/s
    state: str = ""  # of the main thread, as last read
    state_since_t: float | None = None
    io_wait_share: float | None = None  # share of the last 10 s of samples in state D
    first_t: float | None = None  # first seen
    longest_quiet_s: float = 0.0  # longest silence that ended by itself
    gone_t: float | None = None  # when it was first seen gone (or a zombie); its last facts stay here
    exit_code: int | None = None
    exit_signal: int | None = None
    exit_source: str = ""
    oom_kills: int | None = None  # OOM kills counted since the watch began
    load_bytes: int | None = None  # read or mapped since this rank's "Load weight begin"
    load_read_bytes: int | None = None  # of these, read from the disk
    disk_rate: float | None = None  # bytes/s read from the disk, over the last 10 s
    gpu_util_min: int | None = None  # over the last 10 s; None below five samples
    gpu_util_max: int | None = None
    gpu_power_min_w: float | None = None
    gpu_power_max_w: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A short history: (t, value); value None is a gap."""

    name: str
    points: tuple[tuple[float, float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An immutable view of everything known at ``t``."""

    t: float = 0.0
    epoch: float = 0.0
    server: Server | None = None
    server_seen_t: float | None = None
    candidates: tuple[Candidate, ...] = ()
    looked_for: str = ""
    asked_port: int | None = None  # --port; with candidates and no server: none of them has it
    restarts: int = 0
    procs: ProcsReading = ProcsReading()
    gpu: GpuReading = GpuReading()
    log: LogState = LogState()
    port: PortReading | None = None
    port_changed_t: float | None = None
    stacks: tuple[StackDump, ...] = ()
    stacks_request: StacksReading | None = None
    ras: RasReading | None = None
    causes: tuple[CauseHit, ...] = ()
    clocks: tuple[ActivityClock, ...] = ()
    series: tuple[Series, ...] = ()
    probes: tuple[ProbeStatus, ...] = ()
    verdict: Verdict = Verdict(state="waiting", headline="starting to look")
    verdicts: tuple[VerdictChange, ...] = ()
    replay: str = ""  # "" when live, else what is replayed and where
    start: StartReading | None = None
    watch_dirs: WatchDirReading | None = None  # None: none was asked for, or not looked at yet
    baseline: Baseline | None = None  # from finished starts; None: not looked up, or none yet
    saved: tuple[str, ...] = ()  # files this watch has written (flight recordings, bundles), newest last
    usual_s: tuple[tuple[str, float], ...] = ()  # (phase, usual seconds here) from finished starts; () when none
