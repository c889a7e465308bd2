"""What a rank does at a time, in words that follow its name."""

from __future__ import annotations

from sgmon.model import Rank, RankState, WaitKind
from sgmon.units import percent, rate

#: phases whose work is reading
_READING = frozenset({"launch", "spawn", "weights", "draft_weights"})
_HELD = {RankState.PAUSED: "is paused (SIGSTOP)", RankState.FROZEN: "is frozen by its cgroup"}


def doing(rank: Rank, t: float) -> tuple[str, str]:
    """(signal, words): from the fresh sign of activity that tells most, else what it waits in."""
    if rank.clock is None:
        return "proc", "cannot be seen"
    if rank.paused:
        return "proc", _HELD[rank.state]
    fresh = rank.fresh(t)
    if "compiler" in fresh:
        return "compiler", f"compiles ({fresh['compiler'].text})"
    if "children" in fresh:
        return "children", f"waits for its {fresh['children'].text}"
    if rank.wait.kind in (WaitKind.LOCK, WaitKind.STALE_LOCK):
        return rank.wait.signal, rank.wait.text
    if rank.importing and fresh:
        cpu = rank.clock.cpu_percent
        return "cpu", "imports Python modules" + (f" ({percent(cpu)} CPU)" if cpu is not None else "")
    speed = rank.clock.read_rate if "bytes" in fresh else None
    if speed and rank.process.download:
        return "bytes", f"downloads {rank.process.download} at {rate(speed)}"
    if speed and rank.phase in _READING:
        return "bytes", f"reads {rate(speed)}"
    if "bar" in fresh and not fresh["bar"].is_over:
        return "bar", f"makes progress ({fresh['bar'].text})"
    if "cpu" in fresh and rank.cpu_counts:
        return "cpu", f"computes ({fresh['cpu'].text})"
    for signal in ("gpu_memory", "memory", "network", "power", "log", "title"):
        if signal in fresh:
            return signal, f"makes progress ({fresh[signal].text})"
    if speed:
        return "bytes", f"reads {rate(speed)}"
    if "bar" in fresh:
        return "bar", "makes progress (its bar has just filled)"
    return (rank.wait.signal, rank.wait.text) if rank.wait.text else ("proc", "does nothing")


def where(rank: Rank) -> str:
    """State letter, kernel wait and CPU demand as one short fact."""
    process, clock = rank.process, rank.clock
    parts = [f"state {process.state}"]
    if process.wchan and process.wchan != "0":
        parts.append(process.wchan)
    if clock is not None and clock.demand_percent is not None:
        parts.append(f"CPU {percent(clock.demand_percent)}")
    return ", ".join(parts)
