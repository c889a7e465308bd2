"""Event: what comes in. Snapshot: everything known now."""

from __future__ import annotations

from typing import Union

from msgspec import Struct

from sgmon.model.activity import ActivityClock
from sgmon.model.baseline import Baseline, Eta
from sgmon.model.gpu import GpuLoad, GpuReading
from sgmon.model.kernel import KernelReading
from sgmon.model.log import LogReading, LogState, Milestone, RankProgress
from sgmon.model.node import ComparedValue, NodeReading
from sgmon.model.plan import MemoryPlan
from sgmon.model.port import PortReading
from sgmon.model.preflight import Forecast, Preflight
from sgmon.model.procs import ProcsReading
from sgmon.model.rank import Rank
from sgmon.model.ras import RasReading
from sgmon.model.server import Candidate, Orphan, Server, ServerReading
from sgmon.model.stacks import CauseHit, StackDump, StacksReading, StackView
from sgmon.model.start import StartReading
from sgmon.model.verdict import Verdict, VerdictChange
from sgmon.model.watchdir import WatchDirReading

#: seconds that the first line of a log may be older than its process: its clock shows whole seconds
SAME_CLOCK_S = 1.0
#: seconds between a line and its reading that are no delay of the reading alone
READ_LATE_S = 3.0


#: time zones differ by multiples of this
ZONE_S = 900.0
#: a clock that differs by a zone to within these seconds is in another zone: a line is read up to a second late, and
#: its clock shows whole seconds
ZONE_EARLY_S, ZONE_LATE_S = 1.5, 4.0


class ProbeReading(Struct, frozen=True):
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
    Preflight,
    KernelReading,
    NodeReading,
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
    "preflight": Preflight,
    "kernel": KernelReading,
    "node": NodeReading,
}


class Event(Struct, frozen=True):
    """A reading or a failure. t: watch seconds when it was taken; took_s: how long it took.

    node: name of the machine that it is of, where several are watched; "" for the only one.
    """

    t: float
    kind: str
    reading: Reading | None = None
    took_s: float | None = None
    node: str = ""


class ProbeStatus(Struct, frozen=True):
    """How a probe is doing; ages are computed from these and Snapshot.t."""

    name: str
    last_ok_t: float | None = None
    took_s: float | None = None
    in_flight_since_t: float | None = None
    error: str = ""
    remedy: str = ""


class Series(Struct, frozen=True):
    """A short history: (t, value); value None is a gap."""

    name: str
    points: tuple[tuple[float, float | None], ...] = ()


#: a server of this machine is found before (``Snapshot.log_only``)
LOG_FILE_S = 10.0


class Snapshot(Struct, frozen=True):
    """An immutable view of everything known at ``t``."""

    t: float = 0.0
    epoch: float = 0.0
    server: Server | None = None
    server_seen_t: float | None = None
    candidates: tuple[Candidate, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    looked_for: str = ""
    asked_port: int | None = None  # --port; with candidates and no server: none of them has it
    restarts: int = 0
    procs: ProcsReading = ProcsReading()
    gpu: GpuReading = GpuReading()
    gpu_loads: tuple[GpuLoad, ...] = ()  # of the GPUs that were read, in their order
    log: LogState = LogState()
    port: PortReading | None = None
    port_changed_t: float | None = None
    stacks: tuple[StackDump, ...] = ()  # of all requests, oldest first
    stacks_request: StacksReading | None = None  # the newest reading without its dumps
    stack_views: tuple[StackView, ...] = ()  # of the newest requests
    ras: RasReading | None = None
    causes: tuple[CauseHit, ...] = ()
    clocks: tuple[ActivityClock, ...] = ()
    ranks: tuple[Rank, ...] = ()  # see ``sgmon.analyse.ranks``
    phase: str = ""  # of the start: of its rank that is furthest behind, as far as that is known
    phase_source: str = ""  # log | stack | proc
    series: tuple[Series, ...] = ()
    probes: tuple[ProbeStatus, ...] = ()
    verdict: Verdict = Verdict(state="waiting", headline="starting to look")
    verdicts: tuple[VerdictChange, ...] = ()
    replay: str = ""  # "" when live, else what is replayed and where
    start: StartReading | None = None
    preflight: Preflight | None = None  # facts of the start; None: not read yet
    eta: Eta = Eta()
    forecasts: tuple[Forecast, ...] = ()  # what follows from them, the worst first
    memory_plans: tuple[MemoryPlan, ...] = ()  # one for each GPU of the ranks here
    watch_dirs: WatchDirReading | None = None  # None: none was asked for, or not looked at yet
    kernel: KernelReading | None = None  # all that the kernel's log said; None: not asked
    baseline: Baseline | None = None  # from finished starts; None: not looked up, or none yet
    saved: tuple[str, ...] = ()  # files this watch has written (flight recordings, bundles), newest last
    usual_s: tuple[tuple[str, float], ...] = ()  # (phase, usual seconds here) from finished starts; () when none
    nodes: tuple[NodeView, ...] = ()  # where several are watched; see ``sgmon.analyse.nodes``
    compared: tuple[ComparedValue, ...] = ()  # versions and flags of all nodes, those that differ first

    @property
    def family(self) -> str:
        """Name of the watched server's family, of the log's where there is nothing else; "" while none is known."""
        if self.server is None:
            return self.log.family if self.log_only else ""
        return self.server.family

    @property
    def log_only(self) -> bool:
        """Whether there is no server on this machine, and a log is followed all the same. A file may be the log of an
        earlier start: it counts when it grows after a server here would have been found."""
        if self.server is not None or self.log.kind not in ("command", "stdin", "file"):
            return False
        grown_t = self.log.last_byte_t
        return self.log.kind != "file" or (grown_t is not None and grown_t >= 1.0 and self.t >= LOG_FILE_S)

    @property
    def has_been_ready(self) -> bool:
        """Whether this start was ready at some time: its ready line, or a verdict since the server was found."""
        since_t = self.server_seen_t or 0.0
        found = any(change.state == "ready" and change.t >= since_t for change in self.verdicts)
        return found or self.log.ready_line is not None

    @property
    def has_own_servers(self) -> bool:
        """Whether each node runs a server of its own, by the servers' arguments; else they run one together."""
        servers = [view.server for view in self.nodes if view.server is not None]
        return bool(self.nodes) and not any(server.args.nnodes > 1 or server.args.headless for server in servers)

    def of_node(self, name: str) -> Snapshot:
        """What is known of one node, in its own clock; of all where there is one machine, or no such node."""
        return next((view.snapshot for view in self.nodes if view.name == name), self)

    @property
    def parts(self) -> tuple[tuple[str, Snapshot], ...]:
        """(name, snapshot) of every node; of a single machine itself, without a name."""
        return tuple((view.name, view.snapshot) for view in self.nodes) or (("", self),)

    def probe(self, name: str) -> ProbeStatus | None:
        """How the probe of that name is doing; None: it has told nothing yet."""
        return next((status for status in self.probes if status.name == name), None)

    @property
    def began_t(self) -> float | None:
        """When the server's process began, in watch seconds (negative: before the watch)."""
        server = self.server
        if server is None:
            return None
        return server.started_epoch - self.epoch if server.started_epoch is not None else self.server_seen_t

    @property
    def log_zone_s(self) -> float:
        """Seconds by which the log's clock is ahead of ours because it shows the time of another zone (UTC in a
        container, say); 0 where it is ours, or differs by what no zone does."""
        if self.log.clock_zero is None:
            return 0.0
        ahead = self.log.clock_zero - self.epoch
        zone = round((ahead + (ZONE_LATE_S - ZONE_EARLY_S) / 2) / ZONE_S) * ZONE_S
        return zone if -ZONE_LATE_S <= ahead - zone <= ZONE_EARLY_S else 0.0

    def passed_t(self, milestone: Milestone | RankProgress) -> float | None:
        """When a milestone was passed, in watch seconds; None: not known, as where the text came through a pipe and
        nothing tells when it was written.

        The time when its line was seen is exact where it was read at once. The log's own clock (whole seconds) is
        better for a line that was there before the watch, where it is the same clock: after the server began.
        """
        seen_t = milestone.seen_t
        known_t = seen_t if self.log.is_dated(seen_t) else None
        if milestone.t is None:
            return known_t
        clock = milestone.t - self.log_zone_s
        dated = clock - self.epoch
        if seen_t is None:
            return dated
        began = self.server.started_epoch if self.server is not None else None
        same_clock = began is None or clock >= began - SAME_CLOCK_S
        if not same_clock:
            return known_t
        return dated if dated <= seen_t - READ_LATE_S else seen_t


class NodeView(Struct, frozen=True):
    """One node of several. snapshot: of its own events alone, its ``epoch`` the wall clock of that node, its ``t``
    when it last said something. reading: its link; None: nothing was said of it. heard: its word is fresh."""

    name: str
    snapshot: Snapshot
    reading: NodeReading | None = None
    heard: bool = False

    @property
    def server(self) -> Server | None:
        """Its server."""
        return self.snapshot.server

    @property
    def verdict(self) -> Verdict:
        """What its own events say, without the other nodes."""
        return self.snapshot.verdict
