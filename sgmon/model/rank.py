"""The rank: the subject of the verdict. Made once a change in the store; rules, panels, report and JSON read it."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from sgmon.model.activity import ActivityClock, Mark
from sgmon.model.gpu import Gpu
from sgmon.model.procs import Process
from sgmon.model.roles import Role
from sgmon.model.stacks import StackDump

#: seconds: a sign this young means "now". Readings come once a second, busy machines skip some.
FRESH_S = 6.0


class RankState(str, Enum):
    """What the process of a rank is, whatever the time: ``Rank.active(t)`` says whether it makes progress.

    STARTING: it still imports Python modules. RUNNING: nothing holds it. WAITING: it is known what it waits in.
    PAUSED: state T (SIGSTOP, Ctrl-Z). FROZEN: by its cgroup. TRACED: held by a debugger, or by our own dump.
    GONE: its process has ended. UNKNOWN: no counter of it can be read.
    """

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "stopped"
    FROZEN = "frozen"
    TRACED = "traced"
    GONE = "gone"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


class WaitKind(str, Enum):
    """What a process waits in. NONE: not known, or it works. STALE_LOCK: a lock that no live process holds."""

    NONE = ""
    PEER = "peer"
    STORE = "store"
    GPU_SPIN = "gpu-spin"
    GPU_SYNC = "gpu-sync"
    IDLE = "idle"
    LOCK = "lock"
    STALE_LOCK = "baton"
    STORAGE = "storage"
    CHILD = "child"
    PIPE = "pipe"
    DNS = "dns"
    CONNECT = "connect"
    NETWORK = "network"
    OPERATOR = "operator"
    LOG_READER = "log-reader"
    FUTEX = "futex"
    SLEEP = "sleep"

    def __str__(self) -> str:
        return self.value


#: waits that another rank ends
PEER_WAITS = frozenset({WaitKind.PEER, WaitKind.STORE, WaitKind.GPU_SPIN, WaitKind.GPU_SYNC})


def cpu_counts(wait: WaitKind, done: bool) -> bool:
    """CPU time is work unless it spins: in NCCL by its GPU, in a collective or its event loop by its stack."""
    return wait not in PEER_WAITS and wait is not WaitKind.IDLE and not done


class Wait(Struct, frozen=True):
    """What a rank waits in. text: words that follow a name ("waits for ..."). signal: where it was read.

    sure: 0..1, a judgement. target: the file, socket or lock. holder: the pid that holds a lock. asleep_s: seconds in
    which the waiting thread has not run, at least, and tid that thread; None: not known.
    """

    kind: WaitKind = WaitKind.NONE
    text: str = ""
    signal: str = ""
    sure: float = 0.7
    target: str = ""
    holder: int | None = None
    asleep_s: float | None = None
    tid: int | None = None


class RankStack(Struct, frozen=True):
    """What the fresh dumps of a rank say. frame: "function (file)" of the wait, or the innermost function.

    words: what it waits in; "" when it works. works: no wait that is known. moving: samples differ.
    """

    wait: WaitKind = WaitKind.NONE
    frame: str = ""
    words: str = ""
    works: bool = False
    moving: bool = False


class RankMilestone(Struct, frozen=True):
    """A milestone that a rank has passed. event: begin | info | end. t: watch seconds (negative: before the watch),
    by the better of the log's clock and the time when it was seen; None: neither is known."""

    name: str
    phase: str
    line: int
    event: str = ""
    t: float | None = None


class Rank(Struct, frozen=True):
    """One rank, or, before there are any, the process that the start waits for.

    name: as the server's log spells it ("TP0", "DP0 TP1"); "" for an only rank. label: what a sentence calls it
    ("TP0", "the scheduler", "the launcher"). node: where it runs; "" on a single machine. phase: its own, not the
    server's. passed: its milestones, oldest first. progress: (order of the phase, its end was printed), from lines
    that every rank prints; None: not comparable.
    activity_t, non_cpu_t: watch seconds of its newest sign of activity that counts, and of the newest that is no CPU
    time; when it was first seen, where there is none. done: its own start is over while other ranks are behind.
    dumps: its stacks since then, oldest first.
    """

    name: str
    label: str
    role: Role
    process: Process
    clock: ActivityClock | None = None
    node: str = ""
    phase: str = ""
    passed: tuple[RankMilestone, ...] = ()
    progress: tuple[int, bool] | None = None
    wait: Wait = Wait()
    stack: RankStack | None = None
    state: RankState = RankState.UNKNOWN
    activity_t: float = 0.0
    non_cpu_t: float = 0.0
    gpu: Gpu | None = None
    dumps: tuple[StackDump, ...] = ()
    done: bool = False

    @property
    def pid(self) -> int:
        """Of its own process."""
        return self.process.pid

    @property
    def paused(self) -> bool:
        """It cannot run: state T, or frozen. A tracer may be our own dump: it does not count."""
        return self.state in (RankState.PAUSED, RankState.FROZEN)

    @property
    def importing(self) -> bool:
        """It still imports Python modules: it has no title yet."""
        return self.role is Role.IMPORTING

    @property
    def waits_for_peer(self) -> bool:
        """Another rank ends its wait."""
        return self.wait.kind in PEER_WAITS

    @property
    def cpu_counts(self) -> bool:
        """Its CPU time is work."""
        return cpu_counts(self.wait.kind, self.done)

    @property
    def cpu_mark(self) -> Mark | None:
        """Its newest sign of CPU time."""
        return self.clock.mark("cpu") if self.clock is not None else None

    @property
    def non_cpu_mark(self) -> Mark | None:
        """Its newest sign of activity other than CPU time."""
        return next((m for m in self.clock.marks if m.signal != "cpu"), None) if self.clock is not None else None

    @property
    def last_mark(self) -> Mark | None:
        """Its newest sign of activity that counts; None: none yet."""
        cpu, other = self.cpu_mark, self.non_cpu_mark
        return cpu if cpu is not None and self.cpu_counts and (other is None or cpu.t > other.t) else other

    def quiet_s(self, t: float) -> float:
        """Seconds without a sign of activity that counts."""
        return max(0.0, t - self.activity_t)

    def active(self, t: float) -> bool:
        """Its last sign of activity is fresh."""
        return t - self.activity_t <= FRESH_S

    def fresh(self, t: float) -> dict[str, Mark]:
        """signal -> mark, of those that are fresh."""
        marks = self.clock.marks if self.clock is not None else ()
        return {mark.signal: mark for mark in marks if t - mark.t <= FRESH_S}
