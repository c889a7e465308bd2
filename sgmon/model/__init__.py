"""The nouns of sgmon: frozen Structs of msgspec, tuples only, no other library.

Unknown is ``None`` and its reason is in a ``Missing``; zero is a measurement.
Times named ``*_t`` or ``t`` are seconds since the watch began (``Snapshot.epoch`` is the wall
clock at 0); sizes are bytes; durations are seconds.
"""

from sgmon.model.activity import ActivityClock, FilePosition, Mark
from sgmon.model.baseline import Baseline, Eta, Usual, UsualPhase
from sgmon.model.gpu import Gpu, GpuLink, GpuLoad, GpuProcess, GpuReading, GpuSlice
from sgmon.model.kernel import KernelLine, KernelReading
from sgmon.model.log import (
    Bar,
    Complaint,
    LogError,
    LogLine,
    LogReading,
    LogState,
    Milestone,
    QuietGap,
    RankProgress,
)
from sgmon.model.node import NODE_STATES, ComparedValue, NodeReading
from sgmon.model.port import Listener, PortReading
from sgmon.model.procs import (
    BlockedCall,
    Compiler,
    FdTarget,
    OomCount,
    Process,
    ProcsReading,
    Shards,
    TcpPeer,
    ThreadWait,
)
from sgmon.model.rank import Rank, RankMilestone, RankStack, RankState, Wait, WaitKind
from sgmon.model.ras import RasCommunicator, RasRank, RasReading
from sgmon.model.roles import ESSENTIAL_ROLES, Role
from sgmon.model.server import Candidate, Orphan, Server, ServerArgs, ServerReading
from sgmon.model.snapshot import (
    KINDS,
    Event,
    NodeView,
    ProbeReading,
    ProbeStatus,
    Reading,
    Series,
    Snapshot,
)
from sgmon.model.stacks import (
    CauseHit,
    CauseSource,
    Frame,
    StackChange,
    StackClass,
    StackDump,
    StacksReading,
    StackView,
    Thread,
)
from sgmon.model.start import StartReading
from sgmon.model.verdict import (
    STATES,
    Evidence,
    KillClock,
    Missing,
    NextStep,
    Verdict,
    VerdictChange,
)
from sgmon.model.watchdir import WatchDirReading, WatchedDir

__all__ = [
    "ESSENTIAL_ROLES",
    "KINDS",
    "NODE_STATES",
    "STATES",
    "ActivityClock",
    "Bar",
    "Baseline",
    "BlockedCall",
    "Candidate",
    "CauseHit",
    "CauseSource",
    "ComparedValue",
    "Compiler",
    "Complaint",
    "Eta",
    "Event",
    "Evidence",
    "FdTarget",
    "FilePosition",
    "Frame",
    "Gpu",
    "GpuLink",
    "GpuLoad",
    "GpuProcess",
    "GpuReading",
    "GpuSlice",
    "KernelLine",
    "KernelReading",
    "KillClock",
    "Listener",
    "LogError",
    "LogLine",
    "LogReading",
    "LogState",
    "Mark",
    "Milestone",
    "Missing",
    "NextStep",
    "NodeReading",
    "NodeView",
    "OomCount",
    "Orphan",
    "PortReading",
    "ProbeReading",
    "ProbeStatus",
    "Process",
    "ProcsReading",
    "QuietGap",
    "Rank",
    "RankMilestone",
    "RankProgress",
    "RankStack",
    "RankState",
    "RasCommunicator",
    "RasRank",
    "RasReading",
    "Reading",
    "Role",
    "Series",
    "Server",
    "ServerArgs",
    "ServerReading",
    "Shards",
    "Snapshot",
    "StackChange",
    "StackClass",
    "StackDump",
    "StackView",
    "StacksReading",
    "StartReading",
    "TcpPeer",
    "Thread",
    "ThreadWait",
    "Usual",
    "UsualPhase",
    "Verdict",
    "VerdictChange",
    "Wait",
    "WaitKind",
    "WatchDirReading",
    "WatchedDir",
]
