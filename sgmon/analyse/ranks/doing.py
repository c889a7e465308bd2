"""What a rank does at a time, in words that follow its name."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.analyse.activity.marks import CHILDREN
from sgmon.model import Rank, RankState, WaitKind
from sgmon.units import percent, rate

#: phases whose work is reading
_READING = frozenset({"launch", "spawn", "weights", "draft_weights"})
_PROGRESS = "makes progress"
_HELD = {RankState.PAUSED: "is paused (SIGSTOP)", RankState.FROZEN: "is frozen by its cgroup"}


class Doing(NamedTuple):
    """signal: where it was read. verb: words that several ranks can share; detail: what is of this rank alone."""

    signal: str
    verb: str
    detail: str = ""

    @property
    def words(self) -> str:
        return f"{self.verb} {self.detail}" if self.detail else self.verb


def doing(rank: Rank, t: float) -> Doing:
    """From the fresh sign of activity that tells most, else what it waits in."""
    if rank.clock is None:
        return Doing("proc", "cannot be seen")
    if rank.paused:
        return Doing("proc", _HELD[rank.state])
    fresh = rank.fresh(t)
    if "compiler" in fresh:
        return Doing("compiler", "compiles", f"({fresh['compiler'].text})")
    if "children" in fresh:
        how_busy = fresh["children"].text.removeprefix(CHILDREN).lstrip()
        return Doing("children", f"waits for its {CHILDREN}", how_busy)
    if rank.wait.kind in (WaitKind.LOCK, WaitKind.STALE_LOCK):
        return Doing(rank.wait.signal, rank.wait.text)
    if rank.importing and fresh:
        cpu = rank.clock.cpu_percent
        return Doing("cpu", "imports Python modules", f"({percent(cpu)} CPU)" if cpu is not None else "")
    speed = rank.clock.read_rate if "bytes" in fresh else None
    if speed and rank.process.download:
        return Doing("bytes", f"downloads {rank.process.download}", f"at {rate(speed)}")
    if speed and rank.phase in _READING:
        return Doing("bytes", "reads", rate(speed))
    if "bar" in fresh and not fresh["bar"].is_over:
        return Doing("bar", _PROGRESS, f"({fresh['bar'].text})")
    if "cpu" in fresh and rank.cpu_counts:
        return Doing("cpu", "computes", f"({fresh['cpu'].text})")
    for signal in ("gpu_memory", "memory", "network", "power", "log", "title"):
        if signal in fresh:
            return Doing(signal, _PROGRESS, f"({fresh[signal].text})")
    if speed:
        return Doing("bytes", "reads", rate(speed))
    if "bar" in fresh:
        return Doing("bar", _PROGRESS, "(its bar has just filled)")
    if rank.wait.text:
        return Doing(rank.wait.signal, rank.wait.text)
    return Doing("proc", "shows no activity" if rank.clock.marks else "has shown no activity yet")


def where(rank: Rank) -> str:
    """State letter, kernel wait and CPU demand as one short fact."""
    process, clock = rank.process, rank.clock
    parts = [f"state {process.state}"]
    if process.wchan and process.wchan != "0":
        parts.append(process.wchan)
    if clock is not None and clock.demand_percent is not None:
        parts.append(f"CPU {percent(clock.demand_percent)}")
    return ", ".join(parts)
