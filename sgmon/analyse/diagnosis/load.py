"""The weight load without the log: bytes against the sizes of the shards, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Bar, Evidence
from sgmon.patterns import regex
from sgmon.units import duration, percent, plural, rate, size

#: tqdm's own clock: "[01:23<04:56, ...]"
_ELAPSED = regex(r"\[(?:(\d+):)?(\d+):(\d+)<")

#: a share of the load below which it is too early to say how long the rest takes
EARLY = 0.05
#: seconds of the load that a speed is measured over, at least
MEASURED_S = 3.0


class Load(Struct, frozen=True):
    """How far the load is. Ranks share the page cache: what each reads from the disk is a part of the whole, so these
    bytes are summed; what each maps or copies from the cache the others map again, so there the furthest counts."""

    done_bytes: int | None
    total_bytes: int | None
    speed: float | None  # bytes/s, counted as ``done_bytes`` is
    share: float | None  # 0..1
    eta_s: float | None
    by: str  # "bar" | "bytes" | ""
    shards: tuple[str, ...] = ()
    mount: str = ""
    fstype: str = ""
    why: str = ""  # there is no time to go; "": it is too early, or there is one


def load_of(context: Context) -> Load | None:
    """None outside of the weight load."""
    if context.phase not in ("weights", "draft_weights"):
        return None
    if context.args.load_format in context.family.start.unread_formats:
        return Load(None, None, None, None, None, "", why=f"{context.args.load_format} weights: no file is read")
    clocks = [v.clock for v in context.ranks if v.clock is not None]
    total = context.snapshot.procs.model_bytes
    done = _whole([c.load_read_bytes for c in clocks], [c.load_bytes for c in clocks])
    measured = any(c.load_t is not None and context.t - c.load_t >= MEASURED_S for c in clocks)
    speed = _whole([c.load_disk_rate for c in clocks], [c.load_rate for c in clocks]) if measured else None
    if done is not None and total:
        done = min(done, total)
    share, by = None, ""
    name = "draft_weights_progress" if context.phase == "draft_weights" else "weights_progress"
    bar = next((b for b in context.snapshot.log.bars if b.name == name and b.total), None)
    if bar is not None:
        share, by = bar.done / bar.total, "bar"
    elif done is not None and total:
        share, by = done / total, "bytes"
    eta = None if bar is None else _eta_of_bar(context, bar)
    if eta is None and done is not None and total and speed and speed > 1e5 and done >= EARLY * total:
        eta = (total - done) / speed
    why = "the size of the model is not known" if bar is None and done is not None and not total else ""
    shards = [v.process.shards for v in context.ranks if v.process.shards is not None]
    mapped = tuple(sorted({n for s in shards for n in s.names}))
    first = shards[0] if shards else None
    return Load(
        None if done is None else round(done),
        total,
        speed,
        share,
        eta,
        by,
        mapped,
        first.mount if first else "",
        first.fstype if first else "",
        why,
    )


def _whole(parts: Sequence[float | None], each: Sequence[float | None]) -> float | None:
    """The sum of the parts, or the largest of what each has by itself, whichever is more; None: nothing known."""
    known = [part for part in parts if part is not None]
    summed = [sum(known)] if known else []
    return max((*summed, *(one for one in each if one is not None)), default=None)


def _eta_of_bar(context: Context, bar: Bar) -> float | None:
    """From the bar's own clock, which also ran before the watch; too early to say below 5 %."""
    share, shown = bar.done / bar.total, _ELAPSED.search(bar.text)
    if share < EARLY or bar.moved_t is None or shown is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in shown.groups())
    elapsed = hours * 3600 + minutes * 60 + seconds + (context.t - bar.moved_t)
    return (1 - share) * elapsed / share


def load_fact(load: Load) -> Evidence:
    """How far the weight load is, how fast, what is left, and from where, as evidence; what is unknown is left out:
    "4.2 GiB of 15.3 GiB read, 27% by the bytes, 507 MiB/s, 22s to go, ext4 on /models"."""
    parts = []
    if load.done_bytes is not None:
        whole = f" of {size(load.total_bytes)}" if load.total_bytes else ""
        parts.append(f"{size(load.done_bytes)}{whole} read")
    if load.share is not None:
        parts.append(f"{percent(load.share * 100)} by the {load.by}")
    if load.speed is not None:
        parts.append(rate(load.speed))
    if load.eta_s is not None and load.eta_s >= 1.0:
        parts.append(f"{duration(load.eta_s)} to go")
    elif load.eta_s is None and load.why:
        parts.append(f"time to go unknown: {load.why}")
    if load.shards:
        parts.append(f"{plural(len(load.shards), 'shard')} mapped now")
    if load.fstype:
        parts.append(f"{load.fstype} on {load.mount}")
    return Evidence("bytes", ", ".join(parts) or "no bytes could be counted", value=load.done_bytes)
