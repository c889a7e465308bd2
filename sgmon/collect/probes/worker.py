"""Reads one process of the tree, and remembers what is read more rarely than each second."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from sgmon.collect.probes.blocked import Blocked
from sgmon.collect.probes.gaps import Gaps
from sgmon.collect.probes.host import Host
from sgmon.collect.probes.member_roles import Member
from sgmon.collect.probes.schedule import CALM, Schedule
from sgmon.collect.probes.threads import Threads
from sgmon.model import Compiler, FdTarget, Process, Role, Shards, TcpPeer, ThreadWait
from sgmon.proc import counters, fds, files, maps, stat, status, syscalls
from sgmon.proc.guard import CallGuard
from sgmon.proc.stat import Stat
from sgmon.proc.status import Status
from sgmon.servers.registry import is_secret_flag
from sgmon.text import clean, masked_argv

if TYPE_CHECKING:
    from typing import TypeAlias

THREADS_EVERY_S = 5.0
FDS_EVERY_S = 5.0
_POSITIONS = 8  # so many files' positions are read at each look
#: how long a process that has not run is taken at its last look: its parent, its tracer, pages that the kernel took
REST_S = 5.0
MAPS_EVERY_S = 2.0
MAPS_IDLE_S = 10.0
FEW_THREADS = 8
_LOCKED_S = 0.2
Owner: TypeAlias = "Callable[[int], int | None]"
_RSS_STEP = 1 << 20
#: reads that wait for the lock on a process's memory map, which a thread stuck in a page fault may keep for ever
_MAPPED: CallGuard[bytes] = CallGuard()


class Descendants(NamedTuple):
    """What the tree knows of one worker: its live descendants, and where the launcher's stderr goes."""

    tree_cpu_s: float = 0.0
    tree_wait_s: float = 0.0
    compilers: tuple[Compiler, ...] = ()
    launcher_out: str | None = None


class Worker:
    """One process, identified by ``start_ticks``."""

    def __init__(self, host: Host, schedule: Schedule, pid: int, start_ticks: int) -> None:
        self.pid = pid
        self.start_ticks = start_ticks
        self.argv: tuple[str, ...] = ()
        self.title = ""
        self.fds: dict[int, str] = {}
        self.sockets: tuple[int, ...] = ()  # inodes, as of the last look at the descriptors
        self.wait_s: float | None = None
        self.comm = ""
        self._host = host
        self._root = host.root
        self._schedule = schedule
        self._gaps = Gaps(self._root, pid)
        self._threads = Threads(self._root, pid)
        self._waits: dict[int, float] = {}
        self._ran_ns: int | None = None  # its CPU clock at this look
        self._has_slept = False  # no thread of it has run since the look before
        self._is_resting = False  # the same, and what others may change of it was read not long ago
        self._read_t = 0.0
        self._stat: Stat | None = None
        self._status: Status | None = None
        self._io: counters.Io | None = None
        self._schedstat = b""  # of the main thread, as of this look
        self._blocked = Blocked(host, self._gaps, self._threads, pid)
        self._nvidia: tuple[int, ...] = ()
        self._telling: tuple[FdTarget, ...] = ()
        self._marked_t: float | None = None
        self._fd_count: int | None = None
        self._shards: Shards | None = None
        self._maps_rss = -_RSS_STEP

    def look(self) -> Stat:
        """Its stat, which begins a look at it. Where no thread of it has run since the last look, that one's stands
        for ``REST_S``: what only its own threads change is the same. Raises OSError, as ``stat.read``."""
        ran_ns = counters.ran_ns(self._root, self.pid)
        self._has_slept = ran_ns is not None and ran_ns == self._ran_ns
        self._ran_ns = ran_ns
        now = self._host.now()
        self._is_resting = self._has_slept and now - self._read_t < REST_S
        if self._stat is None or not self._is_resting:
            self._stat, self._read_t = stat.read(self._root, self.pid), now
        return self._stat

    def name(self, seen: Stat, settled: bool) -> None:
        """Its command line, read anew when comm changed, and each time until it is ``settled``: a fork keeps its
        parent's line until it executes, and a worker sets its title late."""
        if settled and self.argv and seen.comm == self.comm:
            return
        self.comm = seen.comm
        data = self._gaps.read("cmdline", lambda: self._mapped(seen, "cmdline"))
        argv = stat.split(data) if data else ()
        if argv and argv != self.argv:
            self.argv = argv
            self.title = clean(" ".join(masked_argv(argv, is_secret_flag)), 400)

    def prepare(self) -> None:
        """Its descriptors: all processes' before any is read, so that the two ends of a socket find each other."""
        self._schedule.run((self.pid, "fds"), FDS_EVERY_S, self._descriptors, self.pid, CALM)

    def light(self, seen: Stat, member: Member) -> Process:
        """A helper or compiler: its CPU time and its name."""
        self._wait_of_main()
        return Process(
            pid=self.pid,
            ppid=seen.ppid,
            start_ticks=self.start_ticks,
            role=member.role,
            title=self.title or clean(seen.comm),
            comm=clean(seen.comm),
            state=seen.state,
            threads=seen.threads,
            cpu_s=seen.cpu_s,
            wait_s=self.wait_s,
            majflt=seen.majflt,
        )

    def read(self, seen: Stat, member: Member, below: Descendants, owner_of: Owner) -> Process:
        """Everything. ``owner_of(inode)`` names the process of the tree that holds a socket. What its own threads
        alone can change is not read again where none of them has run."""
        if not (self._is_resting and self._status):
            self._status = self._gaps.read("status", lambda: status.read(self._root, self.pid))
        now = self._status or Status()
        if not (self._has_slept and self._io):
            self._io = self._gaps.read("io", lambda: counters.io(self._root, self.pid))
        io = self._io
        self._look_at_threads(seen)
        self._weights(seen, now)
        wchan, call, stack = self._blocked.look(seen, self._schedstat)
        waits = syscalls.waits_for_lock(call) or wchan == "locks_lock_inode_wait"
        return Process(
            pid=self.pid,
            ppid=seen.ppid,
            start_ticks=self.start_ticks,
            role=member.role,
            rank=member.rank,
            rank_inferred=member.rank_inferred,
            becomes=member.becomes if member.role == Role.IMPORTING else Role.OTHER,
            cgroup=self._host.memory_group(self.pid),
            title=self.title or clean(seen.comm),
            comm=clean(seen.comm),
            state=seen.state,
            threads=seen.threads,
            thread_states=self._threads.states,
            thread_waits=self._thread_waits(),
            cpu_s=seen.cpu_s,
            wait_s=self.wait_s,
            tree_cpu_s=below.tree_cpu_s,
            tree_wait_s=below.tree_wait_s,
            rss_anon_bytes=now.rss_anon_bytes,
            rss_file_bytes=now.rss_file_bytes,
            rss_shmem_bytes=now.rss_shmem_bytes,
            read_bytes=io.read_bytes if io else None,
            rchar_bytes=io.rchar if io else None,
            write_bytes=io.write_bytes if io else None,
            majflt=seen.majflt,
            wchan=wchan,
            call=call,
            kernel_stack=stack,
            tracer_pid=now.tracer_pid,
            frozen=wchan == "__refrigerator" or self._host.is_frozen(self.pid),
            stdio=(self._output(0), self._output(1), self._output(2)),
            same_log=self._same_log(below.launcher_out),
            fds=self._marks(),
            fd_count=self._fd_count,
            nvidia_fds=self._nvidia,
            shards=self._shards,
            tcp=self._tcp(owner_of),
            compilers=below.compilers,
            uid=now.uid,
            ns_pid=now.ns_pids[-1] if len(now.ns_pids) > 1 else None,
            waits_for_lock=call.target if call is not None and syscalls.waits_for_lock(call) else "",
            lock_holder=self._host.lock_holder(self.pid) if waits else None,
            missing=self._gaps.all(),
        )

    def _tcp(self, owner_of: Owner) -> tuple[TcpPeer, ...]:
        """Its TCP sockets, with the process of the tree at the other end."""
        peers = []
        for number in self.sockets:
            row = self._host.rows.get(number)
            if row is not None:
                other = self._host.by_ends.get((row.remote, row.local))
                peer = owner_of(other) if other is not None and row.state != "LISTEN" else None
                peers.append(TcpPeer(row.local, row.remote, row.state, row.retransmits, row.rx_queue, peer))
        return tuple(peers)

    def _look_at_threads(self, seen: Stat) -> None:
        """The main thread's wait each time; all threads each ``THREADS_EVERY_S``, or each time when they are few, or
        when one waits for storage."""
        few = 1 < seen.threads <= FEW_THREADS
        every_s = 0.0 if few or self._threads.stuck else THREADS_EVERY_S
        if self._has_slept and self._schedstat and self._threads.is_settled:
            return
        self._wait_of_main()
        calm_times = 1.0 if self._has_slept else CALM  # the one look that settles where each of them sleeps
        self._schedule.run((self.pid, "threads"), every_s, self._all_threads, self.pid, calm_times)

    def _all_threads(self) -> None:
        seen = self._gaps.read("threads", lambda: self._threads.look(self._host.now()))
        if not seen:
            return
        for thread in seen:
            self._add_wait(thread.tid, thread.wait_s)
        alive = {thread.tid for thread in seen}
        self._waits = {tid: wait for tid, wait in self._waits.items() if tid in alive}

    def _thread_waits(self) -> tuple[ThreadWait, ...]:
        if not self._threads.stuck:
            return ()
        return self._threads.waits(
            self._host.now(), self._host.mounts, self.fds, self._blocked.describe, self._blocked.peek
        )

    def _wait_of_main(self) -> None:
        try:
            self._schedstat = counters.schedstat(f"{self._root}/{self.pid}")
            waited_s = counters.waited_s(self._schedstat)
        except (OSError, ValueError):
            return
        if waited_s is not None:
            self._add_wait(self.pid, waited_s)

    def _add_wait(self, tid: int, wait_s: float) -> None:
        """Totals grow only: what a thread waited stays counted when it ends."""
        self.wait_s = (self.wait_s or 0.0) + max(0.0, wait_s - self._waits.get(tid, 0.0))
        self._waits[tid] = wait_s

    def _descriptors(self) -> None:
        found = self._gaps.read("fds", lambda: fds.read(self._root, self.pid))
        self.fds = found or {}
        self._nvidia = fds.nvidia(self.fds)
        self._fd_count = None if found is None else len(found)
        self.sockets = tuple(n for n in map(fds.inode, self.fds.values()) if n is not None)
        self._marked_t = None

    def _marks(self) -> tuple[FdTarget, ...]:
        """The telling descriptors, told anew when they or the socket table were read anew."""
        if self._marked_t != self._host.rows_t:
            self._marked_t = self._host.rows_t
            marked = fds.telling(self.fds, self._host.rows, self._host.mounts)
            self._telling = tuple(FdTarget(f.fd, clean(f.target, 300), f.note + self._held(f)) for f in marked)
        data = [f for f in self._telling if fds.is_data(f.note)][:_POSITIONS]
        if not data:
            return self._telling
        at = {f.fd: fds.position(self._root, self.pid, f.fd) for f in data}
        return tuple(replace(f, pos=at[f.fd]) if f.fd in at else f for f in self._telling)

    def _held(self, found: FdTarget) -> str:
        held = found.note.startswith("lock file") and fds.holds_lock(self._root, self.pid, found.fd)
        return ", held" if held else ""

    def _weights(self, seen: Stat, now: Status) -> None:
        """maps is long: read it while shards are mapped or file memory moves, else every ten seconds."""
        rss = now.rss_file_bytes or 0
        moving = self._shards is not None or abs(rss - self._maps_rss) >= _RSS_STEP
        every_s = MAPS_EVERY_S if moving else MAPS_IDLE_S
        if self._has_slept and not moving and self._maps_rss >= 0:
            return

        def work() -> None:
            self._maps_rss = rss
            data = self._gaps.read("maps", lambda: self._mapped(seen, "maps"))
            self._shards = maps.shards(data, self._host.mounts) if data else None

        self._schedule.run((self.pid, "maps"), every_s, work, self.pid, CALM)

    def _mapped(self, seen: Stat, name: str) -> bytes:
        """A file that takes the lock on the memory map: in a thread of its own where that lock may be held."""
        path = f"{self._root}/{self.pid}/{name}"
        if seen.state != "D" and not self._threads.uninterruptible:
            return files.read(path)
        return _MAPPED.run(path, lambda: files.read(path), _LOCKED_S)

    def _output(self, fd: int) -> str | None:
        target = self.fds.get(fd)
        return None if target is None else clean(target, 300)

    def _same_log(self, launcher_out: str | None) -> bool | None:
        """Whether stderr goes where the launcher's goes; a moved file keeps its inode, and so its link text."""
        own = self.fds.get(2, self.fds.get(1))
        return None if own is None or launcher_out is None else own == launcher_out
