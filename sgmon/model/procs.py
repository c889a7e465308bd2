"""One reading of /proc for every process of the server's tree."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.roles import Role
from sgmon.model.verdict import Missing


class FdTarget(Struct, frozen=True):
    """A descriptor and what it points at (readlink only; never opened)."""

    fd: int
    target: str
    note: str = ""  # e.g. "ESTAB 127.0.0.1:43452 -> 127.0.0.1:52553", "LISTEN 0.0.0.0:20555", "lock file"
    pos: int | None = None  # of weights and downloads: the file position (fdinfo); what is mapped does not move it


class BlockedCall(Struct, frozen=True):
    """The system call a thread is blocked in, from /proc/PID/syscall.

    name "" with number -1: in the kernel without a call (a page fault).
    """

    number: int
    name: str
    fd: int | None = None
    target: str = ""
    timeout_ms: int | None = None  # poll/epoll_wait; None: no time-out or not known
    note: str = ""  # "no time-out", "3 descriptors, no time-out", "F_SETLKW"


#: kernel functions in which a thread waits for a file system's answer. FUSE's and 9p's waits can be interrupted: such
#: a thread is in state S, not D (fs/fuse/dev.c request_wait_answer, measured on Linux 6.18)
STORAGE_WCHANS = frozenset(
    {
        "folio_wait_bit_common",
        "folio_wait_bit",
        "folio_wait_bit_killable",
        "__folio_lock_killable",
        "wait_on_page_bit_common",
        "wait_on_page_bit",
        "__lock_page_killable",
        "request_wait_answer",
        "fuse_get_req",
        "fuse_wait_on_page_writeback",
        "nfs_wait_bit_killable",
        "rpc_wait_bit_killable",
        "nfs_wait_on_request",
        "nfs4_delay",
        "nfs_iocounter_wait",
        "wait_for_response",
        "p9_client_rpc",
        "p9_virtio_request",
        "netfs_wait_for_read",
        "netfs_wait_for_request",
        "cl_sync_io_wait",
        "ptlrpc_set_wait",
        "ceph_mdsc_wait_request",
        "ceph_osdc_wait_request",
        "io_schedule",
        "blk_io_schedule",
    }
)


class ThreadWait(Struct, frozen=True):
    """A thread (the main one too) that waits for storage: in state D, or asleep in one of ``STORAGE_WCHANS``.

    asleep_s: seconds in which it has not run at all, at least. target: the file that it waits for, "" where the
    kernel does not tell. mount, fstype: where that file is.
    """

    tid: int
    state: str
    wchan: str = ""
    asleep_s: float = 0.0
    call: BlockedCall | None = None
    kernel_stack: tuple[str, ...] = ()
    target: str = ""
    mount: str = ""
    fstype: str = ""


class TcpPeer(Struct, frozen=True):
    """One TCP socket of a process (from /proc/PID/net/tcp{,6} by inode)."""

    local: str
    remote: str
    state: str  # ESTAB, SYN_SENT, LISTEN, CLOSE_WAIT ...
    retransmits: int = 0
    rx_queue: int = 0
    peer_pid: int | None = None


class Compiler(Struct, frozen=True):
    """A live descendant that compiles (ninja, nvcc, cicc, ptxas, cc1plus, g++ ...). CPU seconds so far."""

    pid: int
    name: str
    what: str = ""
    cpu_s: float = 0.0


class Shards(Struct, frozen=True):
    """Weight files mapped now, from /proc/PID/maps; sizes in bytes."""

    names: tuple[str, ...] = ()
    mapped_bytes: int = 0
    mount: str = ""
    fstype: str = ""


class Process(Struct, frozen=True):
    """One process of the tree at one time; counters are totals since its start.

    rank: as the server's log spells it ("TP0", "DP0 TP1"), or "" where it gives none.
    An importing child whose rank is taken from its place in birth order has ``rank_inferred``.
    cpu_s: on a CPU, all threads; wait_s: runnable but waiting for a CPU (schedstat).
    A process that is gone stays in the reading once, with ``gone`` and what is known of its end.
    """

    pid: int
    ppid: int
    start_ticks: int
    role: Role
    rank: str = ""
    rank_inferred: bool = False
    title: str = ""
    comm: str = ""
    state: str = "?"
    threads: int | None = None
    thread_states: tuple[tuple[str, int], ...] = ()
    thread_waits: tuple[ThreadWait, ...] = ()  # for storage, the longest first
    cpu_s: float | None = None
    wait_s: float | None = None
    tree_cpu_s: float | None = None  # live descendants only
    tree_wait_s: float | None = None
    rss_anon_bytes: int | None = None
    rss_file_bytes: int | None = None
    rss_shmem_bytes: int | None = None
    read_bytes: int | None = None
    rchar_bytes: int | None = None
    write_bytes: int | None = None
    majflt: int | None = None
    wchan: str | None = None
    call: BlockedCall | None = None
    kernel_stack: tuple[str, ...] = ()
    tracer_pid: int | None = None
    frozen: bool = False
    stdio: tuple[str | None, str | None, str | None] = (None, None, None)
    same_log: bool | None = None
    fds: tuple[FdTarget, ...] = ()
    fd_count: int | None = None
    nvidia_fds: tuple[int, ...] = ()
    shards: Shards | None = None
    tcp: tuple[TcpPeer, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    ns_pid: int | None = None  # pid inside its own pid namespace
    becomes: Role = Role.OTHER  # importing only: the role that its place in birth order promises; OTHER: not known
    uid: int | None = None
    waits_for_lock: str = ""  # lock file it waits for (flock), or the file it polls
    lock_holder: int | None = None
    gone: bool = False
    exit_code: int | None = None
    exit_signal: int | None = None
    exit_source: str = ""
    exit_t: float | None = None  # watch seconds when its pidfd told of its end; None: seen in a reading alone
    cgroup: str = ""  # its memory control group; "": not known
    missing: tuple[Missing, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        """Tells it from a later process with the same pid."""
        return self.pid, self.start_ticks

    @property
    def alive(self) -> bool:
        """Not gone, and no zombie. With live threads a zombie main thread is none (measured: Z with Threads 2)."""
        return not self.gone and not (self.state in ("Z", "X") and (self.threads or 1) <= 1)

    @property
    def ending(self) -> bool:
        """Whether its main thread has ended, and others still run: nothing can stop its end any more."""
        return self.alive and self.state in ("Z", "X")

    @property
    def halted(self) -> str:
        """What keeps it from running: "frozen" (its cgroup), "stopped" (state T), "traced" (state t); "" nothing."""
        if self.frozen or self.wchan == "__refrigerator":
            return "frozen"
        return {"T": "stopped", "t": "traced"}.get(self.state, "")

    @property
    def download(self) -> str:
        """The end of the name of the incomplete file of the model hub that it holds open; "" without one.

        huggingface_hub writes to blobs/SHA.incomplete.
        """
        open_files = (fd.target for fd in self.fds if fd.target.endswith(".incomplete"))
        return next((target.rsplit("/", 1)[-1][-24:] for target in open_files), "")


class OomCount(Struct, frozen=True):
    """Kills by the OOM killer in one memory control group since it was made. path: the group's folder; "" is the
    whole host (/proc/vmstat). On cgroup v2 a group counts those below it as well."""

    path: str
    kills: int


class ProcsReading(Struct, frozen=True):
    """All processes of the tree; host counters that explain them."""

    processes: tuple[Process, ...] = ()
    uid: int | None = None
    read_ahead_bytes: int | None = None
    oom_kills: int | None = None  # of the launcher's cgroup, else of the host (vmstat)
    oom: tuple[OomCount, ...] = ()  # of the group of every process and those above it, and of the host
    model_bytes: int | None = None  # sum of *.safetensors in the model folder
    cgroup_frozen: bool = False
    throttled: int | None = None  # cpu.stat nr_throttled
    missing: tuple[Missing, ...] = ()
