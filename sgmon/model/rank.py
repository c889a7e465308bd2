"""The rank: the subject of the verdict. Made once a change in the store; rules, panels, report and JSON read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sgmon.model.gpu import Gpu
from sgmon.model.procs import Process
from sgmon.model.roles import Role
from sgmon.model.stacks import StackDump


class RankState(str, Enum):
    """What a rank is doing, decided in one place.

    STARTING: its process is not read yet, or imports. WORKING: a sign of activity is fresh. WAITING: it is known
    what it waits in. QUIET: nothing moves and it is not known why. STOPPED: state T, or frozen by a cgroup.
    TRACED: held by a debugger. GONE: its process has ended. UNKNOWN: no counter can be read.
    """

    STARTING = "starting"
    WORKING = "working"
    WAITING = "waiting"
    QUIET = "quiet"
    STOPPED = "stopped"
    TRACED = "traced"
    GONE = "gone"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


class WaitKind(str, Enum):
    """What a process waits in. NONE: not known, or it works."""

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


@dataclass(frozen=True, slots=True)
class Wait:
    """What a rank waits in. text: words that follow a name ("waits for ..."). signal: where it was read.

    sure: 0..1, a judgement. target: the file, socket or lock. holder: the pid that holds a lock.
    """

    kind: WaitKind = WaitKind.NONE
    text: str = ""
    signal: str = ""
    sure: float = 0.7
    target: str = ""
    holder: int | None = None


@dataclass(frozen=True, slots=True)
class RankMilestone:
    """A milestone that a rank has passed. t: watch seconds; None: before the watch, or the log gives no time."""

    name: str
    phase: str
    line: int
    t: float | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank, or, before there are any, the process that the start waits for.

    name: as the server's log spells it ("TP0", "DP0 TP1"); "" for an only rank. label: what a sentence calls it
    ("TP0", "the scheduler", "the launcher"). node: host name; "" for the host of the watch. pids: its own process
    first, then helpers and compilers below it. phase: its own, not the server's. passed: its milestones, oldest
    first. activity_t: watch seconds of its newest sign of activity that counts (see ``docs/verdicts.md``).
    """

    name: str
    label: str
    role: Role
    process: Process
    node: str = ""
    pids: tuple[int, ...] = ()
    phase: str = ""
    passed: tuple[RankMilestone, ...] = ()
    wait: Wait = Wait()
    state: RankState = RankState.UNKNOWN
    activity_t: float | None = None
    activity: str = ""  # the signal and the words of that activity
    gpu: Gpu | None = None
    dumps: tuple[StackDump, ...] = ()
