"""The weight load without the log: bytes against the sizes of the shards, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass

from sgmon.diagnosis.scene import Scene
from sgmon.model import Evidence
from sgmon.units import duration, percent, plural, rate, size


@dataclass(frozen=True, slots=True)
class Load:
    """done_bytes is a sum over ranks, which share the page cache: each reads a part, the sum is near the whole."""

    done_bytes: int | None
    total_bytes: int | None
    speed: float | None  # bytes/s, all ranks
    share: float | None  # 0..1
    eta_s: float | None
    by: str  # "bar" | "bytes" | ""
    shards: tuple[str, ...] = ()
    mount: str = ""
    fstype: str = ""


def load_of(scene: Scene) -> Load | None:
    """None outside of the weight load."""
    if scene.phase not in ("weights", "draft_weights"):
        return None
    clocks = [v.clock for v in scene.ranks if v.clock is not None]
    parts = [c.load_bytes for c in clocks if c.load_bytes is not None]
    speeds = [c.read_rate for c in clocks if c.read_rate is not None]
    total = scene.snapshot.procs.model_bytes
    done = sum(parts) if parts else None
    speed = sum(speeds) if speeds else None
    share, by = None, ""
    bar = next((b for b in scene.snapshot.log.bars if b.name.endswith("weights_progress") and b.total), None)
    if bar is not None:
        share, by = bar.done / bar.total, "bar"
    elif done is not None and total:
        share, by = min(1.0, done / total), "bytes"
    if done is not None and total and done > 1.05 * total and parts and speeds:
        done, speed = (
            max(parts),
            max(speeds),
        )  # from the page cache every rank maps the whole: the sum counts it twice
    left = (1 - share) * total if share is not None and total else None
    eta = left / speed if left is not None and speed and speed > 1e5 else None
    if by == "bar" and share is not None:
        eta = _eta_of_bar(scene, share)
    shards = [v.process.shards for v in scene.ranks if v.process.shards is not None]
    mapped = tuple(sorted({n for s in shards for n in s.names}))
    first = shards[0] if shards else None
    return Load(
        done, total, speed, share, eta, by, mapped, first.mount if first else "", first.fstype if first else ""
    )


def _eta_of_bar(scene: Scene, share: float) -> float | None:
    """From the pace so far; too early to say below 5 %."""
    begun = [
        m.seen_t for m in scene.snapshot.log.milestones if m.name.endswith("load_begin") and m.seen_t is not None
    ]
    if not begun or share < 0.05:
        return None
    return (1 - share) * (scene.t - begun[-1]) / share


def load_fact(load: Load) -> Evidence:
    """ "4.2 of 15.3 GiB read (27%), 507 MiB/s, 22s to go, ext4 on /models"."""
    parts = []
    if load.done_bytes is not None:
        whole = f" of {size(load.total_bytes)}" if load.total_bytes else ""
        parts.append(f"{size(load.done_bytes)}{whole} read")
    if load.share is not None:
        parts.append(f"{percent(load.share * 100)} by the {load.by}")
    if load.speed is not None:
        parts.append(rate(load.speed))
    if load.eta_s is not None:
        parts.append(f"{duration(load.eta_s)} to go")
    if load.shards:
        parts.append(f"{plural(len(load.shards), 'shard')} mapped now")
    if load.fstype:
        parts.append(f"{load.fstype} on {load.mount}")
    return Evidence("bytes", ", ".join(parts) or "no bytes could be counted", value=load.done_bytes)
