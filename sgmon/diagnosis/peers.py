"""Across the ranks: who waits, in what, for whom. The culprit is the rank that is not there."""

from __future__ import annotations

from dataclasses import dataclass

from sgmon.diagnosis.phase import order
from sgmon.diagnosis.ranks import RankView, idle_gpu
from sgmon.diagnosis.scene import Scene


@dataclass(frozen=True, slots=True)
class Line:
    """Waiters and the ranks they wait for. why: how the culprit is told from the waiters; sure: 0..1."""

    waiters: tuple[RankView, ...]
    culprits: tuple[RankView, ...]
    why: str
    sure: float


def line_up(scene: Scene) -> Line | None:
    """Split the ranks into those that wait for a peer and those that are not there. None: cannot be told."""
    ranks = scene.ranks
    if len(ranks) < 2:
        return None
    for split in (_spinners, _by_wait, _importing, _silent_store, _by_milestone):
        found = split(ranks)
        if found is not None:
            return found
    return None


def _spinners(ranks: tuple[RankView, ...]) -> Line | None:
    """Some GPUs are pinned with flat power while another rank's GPU is at 0 %: that rank has not come."""
    spinning = tuple(v for v in ranks if v.wait.kind == "gpu-spin")
    absent = tuple(v for v in ranks if v.wait.kind != "gpu-spin" and idle_gpu(v))
    if not spinning or not absent or len(spinning) + len(absent) != len(ranks):
        return None
    return Line(spinning, absent, "its GPU is at 0 % while the others spin in the collective", 0.85)


def _by_wait(ranks: tuple[RankView, ...]) -> Line | None:
    waiting = tuple(v for v in ranks if v.waits_for_peer)
    absent = tuple(v for v in ranks if not v.waits_for_peer)
    if not waiting or not absent:
        return None
    sure = min(v.wait.sure for v in waiting)
    by_stack = all(v.dumps for v in absent)
    return Line(waiting, absent, "it is not in the collective the others wait in", sure if by_stack else sure * 0.9)


def _importing(ranks: tuple[RankView, ...]) -> Line | None:
    """Titled ranks that are quiet while another has not finished its imports."""
    late = tuple(v for v in ranks if v.importing)
    here = tuple(v for v in ranks if not v.importing)
    if not late or not here or any(v.moves for v in here):
        return None
    return Line(here, late, "it has not finished its imports", 0.8)


def _silent_store(ranks: tuple[RankView, ...]) -> Line | None:
    """Sockets: everybody has an established peer but one."""
    with_peers = tuple(v for v in ranks if any(s.state == "ESTAB" for s in v.process.tcp))
    without = tuple(v for v in ranks if not v.process.tcp)
    if not with_peers or not without or len(with_peers) + len(without) != len(ranks):
        return None
    if any(v.moves for v in with_peers):
        return None
    return Line(with_peers, without, "it has no connection to its peers", 0.75)


def _by_milestone(ranks: tuple[RankView, ...]) -> Line | None:
    """Each rank prints its own milestones: those behind, when the others have gone quiet."""
    places = {v.rank: order(v.progress.phase) for v in ranks if v.progress is not None}
    if len(places) != len(ranks) or len(set(places.values())) < 2:
        return None
    furthest = max(places.values())
    behind = tuple(v for v in ranks if places[v.rank] < furthest)
    ahead = tuple(v for v in ranks if places[v.rank] == furthest)
    if any(v.moves for v in ahead):
        return None
    return Line(ahead, behind, "its log is at an earlier milestone", 0.6)
