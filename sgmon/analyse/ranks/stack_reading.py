"""What the dumps of one rank say: a collective, the rendezvous, a lock, its event loop, or work."""

from __future__ import annotations

from sgmon.analyse.stacks import waits
from sgmon.analyse.stacks.waits import FOR_GPU, waits_in
from sgmon.model import RankStack, StackDump, WaitKind

_BY_WHAT = {
    FOR_GPU: WaitKind.GPU_SYNC,
    "a lock": WaitKind.LOCK,
    "a child process": WaitKind.CHILD,
    "the network": WaitKind.NETWORK,
    "the operator": WaitKind.OPERATOR,
    "requests": WaitKind.IDLE,
}


def read_stacks(dumps: tuple[StackDump, ...]) -> RankStack | None:
    """The reading of the newest usable dump; moving when the samples differ. None without a usable one."""
    usable = [dump for dump in dumps if dump.threads and not dump.error]
    if not usable:
        return None
    stacks = {tuple((f.function, f.line) for f in dump.threads[0].frames) for dump in usable}
    frames = usable[-1].threads[0].frames
    wait = waits_in(usable[-1])
    moving = len(stacks) > 1
    if wait is None:
        return RankStack(frame=frames[0].function if frames else "", works=True, moving=moving)
    where = f"{wait.frame.function} ({wait.frame.file})" if wait.frame.file else wait.frame.function
    return RankStack(_kind(wait), where, wait.words, moving=moving)


def _kind(wait: waits.Wait) -> WaitKind:
    if wait.for_ranks:
        return WaitKind.STORE if wait.kind == "rendezvous" else WaitKind.PEER
    return _BY_WHAT.get(wait.waits_for, WaitKind.NONE)
