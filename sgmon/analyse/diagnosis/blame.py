"""Across the ranks: who waits, in what, for whom. The culprit is the rank that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sgmon.analyse.diagnosis.context import Scene
from sgmon.analyse.diagnosis.ranks import RankView, idle_gpu
from sgmon.analyse.stacks import ras
from sgmon.analyse.stacks.merge import merge

#: waits that could be a collective as well as something of its own
_VAGUE = frozenset({"", "futex", "sleep", "pipe", "child"})


@dataclass(frozen=True, slots=True)
class Line:
    """Waiters and the ranks they wait for. why: how the culprit is told from the waiters; sure: 0..1."""

    waiters: tuple[RankView, ...]
    culprits: tuple[RankView, ...]
    why: str
    sure: float
    signal: str = "peers"


def line_up(scene: Scene) -> Line | None:
    """Split the ranks into those that wait for a peer and those that are not there. None: cannot be told."""
    if len(scene.ranks) < 2:
        return None
    for split in (_by_ras, _by_stacks, _spinners, _importing, _by_wait, _unconnected, _by_milestone):
        found = split(scene)
        if found is not None:
            return found
    return None


def _by_ras(scene: Scene) -> Line | None:
    """NCCL's own word: the rank that gave no answer, or whose count of collectives is behind."""
    reading = scene.snapshot.ras
    if reading is None or reading.answer != "ok" or reading.unequal_unchanged is False:
        return None
    if ras.belongs(reading, scene.snapshot.procs.processes) is False:
        return None
    pids = {rank.pid for rank in ras.culprits(reading) if rank.pid is not None}
    late = tuple(v for v in scene.ranks if v.pid in pids or v.process.ns_pid in pids)
    here = tuple(v for v in scene.ranks if v not in late)
    if not late or not here:
        return None
    return Line(here, late, "NCCL's RAS counts it as missing or behind", 0.95, "ras")


def _by_stacks(scene: Scene) -> Line | None:
    """Fresh stacks of every rank, merged: the odd ones stand where the others do not wait."""
    if not all(v.stack is not None for v in scene.ranks):
        return None
    classes = merge([d for v in scene.ranks for d in v.dumps])
    odd = {rank for found in classes if found.odd for rank in found.ranks}
    late = tuple(v for v in scene.ranks if v.rank in odd)
    here = tuple(v for v in scene.ranks if v.rank not in odd)
    if not late or not here:
        return None
    return Line(here, late, "its stack is not where the others wait", 0.9, "stack")


def _spinners(scene: Scene) -> Line | None:
    """Some GPUs are pinned with flat power while another rank's GPU is at 0 %: that rank has not come."""
    spinning = tuple(v for v in scene.ranks if v.wait.kind == "gpu-spin")
    absent = tuple(v for v in scene.ranks if v.wait.kind != "gpu-spin" and idle_gpu(v))
    if not spinning or not absent or len(spinning) + len(absent) != len(scene.ranks):
        return None
    return Line(spinning, absent, "its GPU is at 0 % while the others spin in the collective", 0.85, "gpu")


def _importing(scene: Scene) -> Line | None:
    """Titled ranks that are quiet while another has not finished its imports."""
    late = tuple(v for v in scene.ranks if v.importing)
    here = tuple(v for v in scene.ranks if not v.importing)
    if not late or not here or any(v.moves for v in here):
        return None
    return Line(here, late, "it still has its old title: its imports are not over", 0.85)


def _by_wait(scene: Scene) -> Line | None:
    """Those in a collective against those that are seen elsewhere. A futex may be either, so it decides nothing
    while a better suspect is there."""
    waiting = tuple(v for v in scene.ranks if _waits(v, scene))
    rest = [v for v in scene.ranks if v not in waiting]
    elsewhere = tuple(v for v in rest if v.wait.kind not in _VAGUE or _works(v))
    vague = tuple(v for v in rest if v not in elsewhere)
    if elsewhere and (waiting or vague):
        sure = 0.9 if all(v.dumps for v in elsewhere) else 0.8
        sure = sure if waiting else 0.7
        return Line(waiting + vague, elsewhere, "it is somewhere else than the ranks that wait", sure)
    if waiting and vague and (len(vague) < len(waiting) or len(scene.ranks) == 2):
        sure = 0.75 if len(vague) < len(waiting) else 0.6
        return Line(waiting, vague, "it is not in the collective that the others wait in", sure)
    return None


def _waits(view: RankView, scene: Scene) -> bool:
    """In its event loop a rank waits for its peers only while the first request is under way."""
    return view.waits_for_peer or view.done or (view.wait.kind == "idle" and scene.phase == "warmup")


def _works(view: RankView) -> bool:
    return view.stack is not None and view.stack.kind == "work"


def _unconnected(scene: Scene) -> Line | None:
    """Sockets: everybody has an established peer but one."""
    with_peers = tuple(v for v in scene.ranks if any(s.state == "ESTAB" for s in v.process.tcp))
    without = tuple(v for v in scene.ranks if not v.process.tcp)
    if not with_peers or not without or len(with_peers) + len(without) != len(scene.ranks):
        return None
    return _quiet_line(with_peers, without, "it has no connection to its peers", 0.75)


def _by_milestone(scene: Scene) -> Line | None:
    """Those whose own lines are behind, when the others have gone quiet."""
    known = {v.rank: v.place for v in scene.ranks if v.place is not None}
    if len(known) != len(scene.ranks) or len(set(known.values())) < 2:
        return None
    furthest = max(known.values())
    behind = tuple(v for v in scene.ranks if known[v.rank] < furthest)
    ahead = tuple(v for v in scene.ranks if known[v.rank] == furthest)
    return _quiet_line(ahead, behind, "its log is at an earlier milestone", 0.7)


def _quiet_line(here: Iterable[RankView], late: Iterable[RankView], why: str, sure: float) -> Line | None:
    waiters, culprits = tuple(here), tuple(late)
    return None if any(v.moves for v in waiters) else Line(waiters, culprits, why, sure)
