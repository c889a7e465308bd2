"""GPU memory that somebody else holds, before a start and during one: strangers, other servers, orphaned workers."""

from __future__ import annotations

from sgmon.analyse.gpu.holders import FOREIGN_BYTES, Holding, holdings_in, in_the_way
from sgmon.analyse.memo import Memo
from sgmon.model import Evidence, Gpu, NextStep, Snapshot, Verdict
from sgmon.text import clean
from sgmon.units import size

MOST = 3
_facts: Memo[tuple[Evidence, ...]] = Memo(4)


def foreign_holders(snapshot: Snapshot) -> tuple[Evidence, ...]:
    """The largest first. Before a start all GPUs count, then those that ranks are on."""
    if not _known(snapshot):
        return ()
    inputs = (snapshot.gpu, snapshot.procs, snapshot.server, snapshot.candidates, snapshot.ranks)
    return _facts.get(inputs, (), lambda: _foreign_holders(snapshot))


def _foreign_holders(snapshot: Snapshot) -> tuple[Evidence, ...]:
    found: list[tuple[int, Evidence]] = []
    used = {rank.gpu.index for rank in snapshot.ranks if rank.gpu is not None}  # of ranks that have ended, too
    for gpu in snapshot.gpu.gpus:
        if snapshot.server is None or gpu.ranks or gpu.index in used:
            found += [(one.used_bytes or 0, _fact(gpu, one)) for one in _findings(snapshot, gpu)]
    found.sort(key=lambda item: -item[0])
    return tuple(fact for _, fact in found[:MOST])


def _findings(snapshot: Snapshot, gpu: Gpu) -> list[Holding]:
    """A pid that is not seen here may be the rank itself where ranks are inferred. What nobody accounts for is a
    finding only before a start, on a GPU without any listed holder."""
    held = holdings_in(snapshot, gpu)
    found = [one for one in in_the_way(gpu, held) if not (one.kind == "unseen" and gpu.ranks_inferred)]
    if snapshot.server is None and not gpu.processes:
        found += [one for one in held if one.kind == "unaccounted" and (one.used_bytes or 0) >= FOREIGN_BYTES]
    return found


#: errors that GPU memory held by somebody else explains
_EXPLAINED = frozenset({"oom_cuda", "not_enough_memory", "memory_unbalanced", "nccl_error", "cuda_error"})


def explained_by_holders(snapshot: Snapshot, found: Verdict, facts: tuple[Evidence, ...]) -> bool:
    """Whether a crash has its cause in who holds GPU memory."""
    error = snapshot.log.error
    return bool(facts) and found.state == "crashed" and error is not None and error.kind in _EXPLAINED


def look_step(facts: tuple[Evidence, ...]) -> tuple[NextStep, ...]:
    """How to see who that is, before anybody ends it."""
    pids = ",".join(str(fact.pid) for fact in facts if fact.pid)
    if not pids:
        return (NextStep("See who holds the GPU memory", "nvidia-smi"),) if facts else ()
    return (
        NextStep(
            "See what is left or holds the GPU memory, and end it if nobody needs it",
            f"ps -o pid,ppid,user,etime,args -p {pids}",
        ),
    )


def words(held: Holding) -> str:
    """ "pid 4711, python of a server that is gone"."""
    name = clean(held.name, 60)
    return {
        "orphan": f"pid {held.pid}, {name} of a server that is gone",
        "other-server": f"pid {held.pid}, {name} of another server",
        "unseen": f"pid {held.pid}, which is not in this /proc (another container, or it is gone)",
        "unaccounted": "no process that the driver lists (another container, or a context that never ended)",
    }.get(held.kind, f"pid {held.pid} {name}".rstrip())


def _fact(gpu: Gpu, held: Holding) -> Evidence:
    amount = f"{size(held.used_bytes)} of GPU {gpu.index} held" if held.used_bytes else f"GPU {gpu.index} is held"
    return Evidence("gpu", f"{amount} by {words(held)}", pid=held.pid or None, value=held.used_bytes)


def _known(snapshot: Snapshot) -> bool:
    """Whether it is known which processes are the server's: not in the first second of a watch."""
    if snapshot.gpu.unavailable:
        return False
    if snapshot.server is not None:
        return bool(snapshot.procs.processes)
    return bool(snapshot.looked_for)
