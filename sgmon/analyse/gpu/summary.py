"""One GPU in this start: who holds it, how it grows, what it does, what the log says that it holds. Pure numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.gpu.holders import Holding, holdings_in, in_the_way
from sgmon.model import Gpu, GpuLoad, Milestone, Snapshot

STEP_BYTES = 16 * 1024 * 1024
RATE_WINDOW_S = 10.0
#: how far memory or the log's plan may be off before it is said
APART_BYTES = 2 * 1024**3
GIB = 1024**3

Points = Sequence[tuple[float, float | None]]
#: stage -> the milestones that begin and end it
_STAGES = (
    ("weights", ("load_begin",), ("load_end",)),
    ("kv", ("kv_profile", "kv_alloc"), ("memory_pool_end", "kv_alloc")),
    ("graphs", ("graph_begin",), ("graph_end",)),
)


class Growth(Struct, frozen=True):
    """How memory moves. rate: bytes/s over ten seconds. flat_s: since the last step of 16 MiB; at_least: no step was
    seen in this watch. None: unknown."""

    rate: float | None = None
    flat_s: float | None = None
    at_least: bool = False


class Plan(Struct, frozen=True):
    """What the log says of this GPU's memory, in bytes (its "GB" are GiB). free_bytes: as last printed."""

    weights_bytes: float | None = None
    kv_bytes: float | None = None
    graph_bytes: float | None = None
    free_bytes: float | None = None


class Stage(Struct, frozen=True):
    """Weights, kv or graphs on the clock of the watch; end_t None: not over."""

    name: str
    begin_t: float
    end_t: float | None = None


class GpuSummary(Struct, frozen=True):
    """Everything beyond the reading itself. work: "spins", "works", "idle" or "" (unknown).

    findings, worst first: spins, waited-for (idle while another GPU of this server spins), foreign, apart (memory
    differs from the other ranks' GPUs).
    """

    index: int
    held: tuple[Holding, ...] = ()
    growth: Growth = Growth()
    levels: GpuLoad = GpuLoad(-1)
    work: str = ""
    plan: Plan = Plan()
    stages: tuple[Stage, ...] = ()
    free_bytes: int | None = None
    findings: tuple[str, ...] = ()
    usual_bytes: float | None = None  # what the other ranks' GPUs hold, the median


def summaries(snapshot: Snapshot) -> tuple[GpuSummary, ...]:
    """One for each GPU, in the order of the reading."""
    series = {item.name: item.points for item in snapshot.series}
    made = [_summary(snapshot, gpu, series) for gpu in snapshot.gpu.gpus]
    return tuple(
        _compared(gpu, summary, snapshot.gpu.gpus, made) for gpu, summary in zip(snapshot.gpu.gpus, made, strict=True)
    )


def _summary(snapshot: Snapshot, gpu: Gpu, series: Mapping[str, Points]) -> GpuSummary:
    load = next((one for one in snapshot.gpu_loads if one.index == gpu.index), GpuLoad(gpu.index))
    known = gpu.total_bytes is not None and gpu.used_bytes is not None
    free = (gpu.total_bytes or 0) - (gpu.reserved_bytes or 0) - (gpu.used_bytes or 0) if known else None
    return GpuSummary(
        index=gpu.index,
        held=holdings_in(snapshot, gpu),
        growth=growth(series.get(f"gpu{gpu.index}.used", ())),
        levels=load,
        work=load.work,
        plan=plan_of(snapshot.log.milestones, gpu.ranks),
        stages=stages(snapshot, gpu.ranks),
        free_bytes=free,
    )


def _compared(gpu: Gpu, summary: GpuSummary, gpus: Sequence[Gpu], made: Sequence[GpuSummary]) -> GpuSummary:
    """The summary with what sets this GPU apart from the others that ranks are on."""
    others = [(one, its) for one, its in zip(gpus, made, strict=True) if one.ranks and one.index != gpu.index]
    findings = []
    usual: float | None = None
    if summary.work == "spins":
        findings.append("spins")
    if gpu.ranks and summary.work == "idle" and any(its.work == "spins" for _, its in others):
        findings.append("waited-for")
    if in_the_way(gpu, summary.held):
        findings.append("foreign")
    sizes = [one.used_bytes for one, _ in others if one.used_bytes is not None]
    if gpu.ranks and gpu.used_bytes is not None and len(sizes) >= 2:
        from statistics import median  # 4 ms to import

        usual = median(sizes)
        if abs(gpu.used_bytes - usual) > max(APART_BYTES, 0.05 * usual):
            findings.append("apart")
    return replace(summary, findings=tuple(findings), usual_bytes=usual)


def growth(points: Points) -> Growth:
    """From the memory series; unknown while its newest point is a gap."""
    if not points or points[-1][1] is None:
        return Growth()
    now, last = points[-1]
    assert last is not None
    flat_since = now
    for t, value in reversed(points):
        if value is None:
            continue
        if abs(value - last) >= STEP_BYTES:
            return Growth(_rate(points), now - flat_since)
        flat_since = t
    return Growth(_rate(points), now - flat_since, at_least=True)


def _rate(points: Points) -> float | None:
    end_t, end = points[-1]
    first: tuple[float, float] | None = None
    for t, value in reversed(points):
        if end_t - t > RATE_WINDOW_S:
            break
        if value is not None:
            first = (t, value)
    if first is None or end is None or end_t - first[0] < 3.0:
        return None
    return (end - first[1]) / (end_t - first[0])


def plan_of(milestones: Iterable[Milestone], ranks: Sequence[str]) -> Plan:
    """What each part took: said by the line itself, else the difference of the "avail mem" that the ranks of this GPU
    print before and after."""
    begin = end = pool = free = weights = cache = None
    graphs: float | None = None
    for milestone in milestones:
        if ranks and milestone.rank not in ranks:
            continue
        fields = dict(milestone.fields)
        left = _bytes(fields.get("gb"))
        if milestone.name == "graph_end" and (took := _bytes(fields.get("used"))) is not None:
            graphs = (graphs or 0.0) + took
        said = _bytes(fields.get("size"))
        if said is not None and milestone.name == "load_end":
            weights = said
        elif said is not None and milestone.name == "profile_end":
            cache = said
        if left is None:
            continue
        if milestone.name == "load_begin":
            begin = left if begin is None else begin
        elif milestone.name == "load_end":
            end = left if end is None else end
        elif milestone.name == "memory_pool_end":
            pool = left if pool is None else pool
        elif milestone.name != "graph_end":
            continue  # these print what is used, not what is left
        free = left
    return Plan(
        weights if weights is not None else _took(begin, end),
        cache if cache is not None else _took(end, pool),
        graphs,
        free,
    )


def _took(before: float | None, after: float | None) -> float | None:
    return before - after if before is not None and after is not None else None


def _bytes(gib: str | None) -> float | None:
    try:
        return None if gib is None else float(gib) * GIB
    except ValueError:
        return None


def stages(snapshot: Snapshot, ranks: Sequence[str]) -> tuple[Stage, ...]:
    """When the stages began and ended for the ranks of this GPU (for any, where none is known)."""
    mine = [m for m in snapshot.log.milestones if not ranks or m.rank in ranks or not m.rank]
    out = []
    for name, begins, ends in _STAGES:
        begun = [t for m in mine if m.name in begins and (t := snapshot.passed_t(m)) is not None]
        ended = [t for m in mine if m.name in ends and (t := snapshot.passed_t(m)) is not None]
        if not begun and not ended:
            continue
        first = min([*begun, *ended])
        over = len([m for m in mine if m.name in begins]) <= len([m for m in mine if m.name in ends])
        out.append(Stage(name, first, max(ended) if ended and (over or name != "graphs") else None))
    return tuple(out)
