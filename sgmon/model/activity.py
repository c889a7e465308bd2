"""Signs of activity: which signal of which process moved last, and how much."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.roles import Role


class Mark(Struct, frozen=True):
    """One sign of activity: which signal moved, how much (in words), when."""

    signal: str
    t: float
    text: str
    rate: float | None = None  # per second, in the signal's own unit
    queued: bool = False  # of signal cpu: CPU time that was wanted, and mostly waited for
    is_over: bool = False  # of signal bar: it is full, so that nothing more is to come of it


class FilePosition(Struct, frozen=True):
    """How far a process has read or written a file, and since when it goes no further. Only of a file in which it was
    seen to go on: what is mapped, or read at given places, never moves."""

    target: str
    pos: int
    since_t: float


class ActivityClock(Struct, frozen=True):
    """Signs of activity of one process (a rank, or the launcher), newest first; one mark per signal.

    Signals: log, bar, bytes, memory, gpu_memory, cpu, compiler, title, network, power, files.
    ``files`` (a watched folder grew) is noted for the launcher: which rank wrote is not known.
    ``cpu`` is kept apart: alone it proves nothing in a collective.
    """

    pid: int
    rank: str
    role: Role
    since_t: float
    marks: tuple[Mark, ...] = ()
    read_rate: float | None = None  # bytes/s over the last 10 s
    rss_rate: float | None = None
    cpu_percent: float | None = None  # on-CPU share over the last 10 s, 100 = one core
    demand_percent: float | None = None  # on-CPU plus run-queue wait
    tree_cpu_percent: float | None = None  # descendants
    cpu_share_alone: float | None = None  # CPU time got of that wanted, since its newest sign that is no CPU time
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
    position: FilePosition | None = None  # of the file in which it went on last
    build_s: float = 0.0  # CPU seconds of the compilers seen below it
    disk_rate: float | None = None  # bytes/s read from the disk, over the last 10 s
    load_t: float | None = None  # when its weight load was first seen
    load_rate: float | None = None  # as ``read_rate``, and not of the time before its load
    load_disk_rate: float | None = None  # as ``disk_rate``, and not of the time before its load
    gpu_util_min: int | None = None  # over the last 10 s; None below five samples
    gpu_util_max: int | None = None
    gpu_power_max_w: float | None = None
    gpu_spins: bool = False  # its GPU is pinned with flat, low power: see ``GpuLoad.work``
    born: int = 0  # start ticks
    ppid: int | None = None  # the parent that it was born to
    becomes: Role = Role.OTHER  # importing only: what its place in birth order promises
    alive_t: float | None = None  # begin of the last reading in which it lived
    exit_t: float | None = None  # when its pidfd told of its end; None: seen in a reading alone
    oom: int | None = None  # OOM kills in its own control group since the watch began; None: not known
    oom_host: int | None = None  # the same, of the whole host
    oom_shared: bool = False  # other processes of the server have the same control group

    def mark(self, signal: str) -> Mark | None:
        """The newest mark of this signal."""
        return next((mark for mark in self.marks if mark.signal == signal), None)
