"""What the dumps of one rank say: a collective, the rendezvous, a lock, its event loop, or work."""

from __future__ import annotations

from dataclasses import dataclass

from sgmon.analyse.stacks.waits import FOR_GPU, waits_in
from sgmon.model import StackDump

_BY_WHAT = {
    FOR_GPU: "gpu-sync",
    "a lock": "lock",
    "a child process": "child",
    "the network": "network",
    "the operator": "operator",
    "requests": "idle",
}


@dataclass(frozen=True, slots=True)
class StackWait:
    """kind: peer, store, gpu-sync, lock, child, network, operator, idle or work. moving: samples differ."""

    kind: str
    frame: str
    words: str
    moving: bool = False


def stack_wait(dumps: tuple[StackDump, ...]) -> StackWait | None:
    """The reading of the newest usable dump; None without one."""
    usable = [d for d in dumps if d.threads and not d.error]
    if not usable:
        return None
    stacks = {tuple((f.function, f.line) for f in d.threads[0].frames) for d in usable}
    moving = len(stacks) > 1
    newest = usable[-1].threads[0].frames
    wait = waits_in(usable[-1])
    if wait is None:
        return StackWait("work", newest[0].function if newest else "", "", moving)
    kind = _BY_WHAT.get(wait.waits_for, "other")
    if wait.for_ranks:
        kind = "store" if wait.kind == "rendezvous" else "peer"
    where = f"{wait.frame.function} ({wait.frame.file})" if wait.frame.file else wait.frame.function
    return StackWait(kind, where, wait.words, moving)
