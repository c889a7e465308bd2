"""Across the ranks: who waits, in what, for whom. The culprit is the rank that is not there."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from sgmon.analyse import thresholds
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.stacks import ras
from sgmon.analyse.stacks.merge import merge
from sgmon.analyse.stacks.rules import rules_of
from sgmon.model import Rank, WaitKind

#: waits that could be a collective as well as something of its own
_VAGUE = frozenset({WaitKind.NONE, WaitKind.FUTEX, WaitKind.SLEEP, WaitKind.PIPE, WaitKind.CHILD})


class Blame(Struct, frozen=True):
    """Waiters and the ranks they wait for. why: how the culprit is told from the waiters; sure: 0..1."""

    waiters: tuple[Rank, ...]
    culprits: tuple[Rank, ...]
    why: str
    sure: float
    signal: str = "peers"


def find_blame(context: Context) -> Blame | None:
    """Split the ranks into those that wait for a peer and those that are not there. None: cannot be told."""
    if len(context.ranks) < 2:
        return None
    for split in (_by_ras, _by_stacks, _spinners, _importing, _by_wait, _unconnected, _by_milestone):
        found = split(context)
        if found is not None:
            return found
    return None


def _by_ras(context: Context) -> Blame | None:
    """NCCL's own word: the rank that gave no answer, or whose count of collectives is behind."""
    reading = context.snapshot.ras
    if reading is None or reading.answer != "ok" or reading.unequal_unchanged is False:
        return None
    if ras.belongs(reading, context.snapshot.procs.processes) is False:
        return None
    pids = {rank.pid for rank in ras.culprits(reading) if rank.pid is not None}
    late = tuple(v for v in context.ranks if v.pid in pids or v.process.ns_pid in pids)
    here = tuple(v for v in context.ranks if v not in late)
    if not late or not here:
        return None
    return Blame(here, late, "NCCL's RAS counts it as missing or behind", 0.95, "ras")


def _by_stacks(context: Context) -> Blame | None:
    """Fresh stacks of every rank, merged: the outliers are not in the wait of the others."""
    if not all(v.stack is not None for v in context.ranks):
        return None
    classes = merge([d for v in context.ranks for d in v.dumps], rules_of(context.snapshot.server))
    outliers = {rank for found in classes if found.outlier for rank in found.ranks}
    late = tuple(v for v in context.ranks if v.name in outliers)
    here = tuple(v for v in context.ranks if v.name not in outliers)
    if not late or not here:
        return None
    return Blame(here, late, "its stack is not where the others wait", 0.9, "stack")


def _spinners(context: Context) -> Blame | None:
    """Some GPUs are pinned with flat power while another rank's GPU is at 0 %: that rank has not come."""
    spinning = tuple(v for v in context.ranks if v.wait.kind is WaitKind.GPU_SPIN)
    absent = tuple(v for v in context.ranks if v.wait.kind is not WaitKind.GPU_SPIN and idle_gpu(v))
    if not spinning or not absent or len(spinning) + len(absent) != len(context.ranks):
        return None
    return Blame(spinning, absent, "its GPU is at 0 % while the others spin in the collective", 0.85, "gpu")


def _importing(context: Context) -> Blame | None:
    """Titled ranks that are quiet while another has not finished its imports."""
    late = tuple(v for v in context.ranks if v.importing)
    here = tuple(v for v in context.ranks if not v.importing)
    if not late or not here or any(v.active(context.t) for v in here):
        return None
    return Blame(here, late, "it still has its old title: its imports are not over", 0.85)


def _by_wait(context: Context) -> Blame | None:
    """Those in a collective against those that are seen elsewhere. A futex may be either, so it decides nothing
    while a better suspect is there."""
    waiting = tuple(v for v in context.ranks if _waits(v, context))
    rest = [v for v in context.ranks if v not in waiting]
    elsewhere = tuple(v for v in rest if v.wait.kind not in _VAGUE or _works(v))
    vague = tuple(v for v in rest if v not in elsewhere)
    if elsewhere and (waiting or vague):
        sure = 0.9 if all(v.dumps for v in elsewhere) else 0.8
        sure = sure if waiting else 0.7
        return Blame(waiting + vague, elsewhere, "it is somewhere else than the ranks that wait", sure)
    if waiting and vague and (len(vague) < len(waiting) or len(context.ranks) == 2):
        sure = 0.75 if len(vague) < len(waiting) else 0.6
        return Blame(waiting, vague, "it is not in the collective that the others wait in", sure)
    return None


def _waits(rank: Rank, context: Context) -> bool:
    """In its event loop a rank waits for its peers until the server is ready: for the first request, or for a call
    that others are still in."""
    idle = rank.wait.kind is WaitKind.IDLE and context.phase not in ("ready", "serving")
    return rank.waits_for_peer or rank.done or idle


def _works(rank: Rank) -> bool:
    return rank.stack is not None and rank.stack.works


def _unconnected(context: Context) -> Blame | None:
    """Sockets: everybody has an established peer but one."""
    with_peers = tuple(v for v in context.ranks if any(s.state == "ESTAB" for s in v.process.tcp))
    without = tuple(v for v in context.ranks if not v.process.tcp)
    if not with_peers or not without or len(with_peers) + len(without) != len(context.ranks):
        return None
    return _if_quiet(context, with_peers, without, "it has no connection to its peers", 0.75)


def _by_milestone(context: Context) -> Blame | None:
    """Those whose own lines are behind, when the others have gone quiet."""
    known = {v.name: v.progress for v in context.ranks if v.progress is not None}
    if len(known) != len(context.ranks) or len(set(known.values())) < 2:
        return None
    furthest = max(known.values())
    behind = tuple(v for v in context.ranks if known[v.name] < furthest)
    ahead = tuple(v for v in context.ranks if known[v.name] == furthest)
    return _if_quiet(context, ahead, behind, "its log is at an earlier milestone", 0.7)


def _if_quiet(context: Context, here: Iterable[Rank], late: Iterable[Rank], why: str, sure: float) -> Blame | None:
    waiters, culprits = tuple(here), tuple(late)
    return None if any(v.active(context.t) for v in waiters) else Blame(waiters, culprits, why, sure)


def idle_gpu(rank: Rank) -> bool:
    """Its GPU does nothing at all, by ten seconds of samples or by the one there is."""
    clock = rank.clock
    if clock is not None and clock.gpu_util_max is not None:
        return clock.gpu_util_max <= thresholds.CPU_PERCENT
    return rank.gpu is not None and rank.gpu.util_percent == 0
