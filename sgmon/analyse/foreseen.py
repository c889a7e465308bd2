"""The forecasts of a watched start: its facts made into what the rules of ``sgmon.foresight`` look at. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from sgmon.analyse.diagnosis.holders import words
from sgmon.analyse.gpu.holders import Holding, holdings, holdings_in
from sgmon.analyse.gpu.rank_mapping import physical
from sgmon.foresight.check import forecast
from sgmon.foresight.plan import plans
from sgmon.foresight.start import RankGpu, Start
from sgmon.model import Gpu, GpuReading, Server, Snapshot
from sgmon.model.plan import MemoryPlan
from sgmon.model.preflight import Forecast, Preflight
from sgmon.model.snapshot import ZONE_S
from sgmon.servers import registry
from sgmon.servers.family import ServerFamily
from sgmon.units import size

#: a log that grew this long after the first look is written now
LIVE_S = 10.0


class Foreseen:
    """Makes the forecasts of one watch. The rules are asked again when the start that they look at is another."""

    def __init__(self) -> None:
        self._start: Start | None = None
        self._found: tuple[Forecast, ...] = ()
        self._planned: tuple[MemoryPlan, ...] = ()

    def with_forecasts(self, old: Snapshot, new: Snapshot) -> Snapshot:
        """``new`` with its forecasts. ``old``: the snapshot before."""
        if new.server is None or not new.server.args_known:
            return replace(new, forecasts=(), memory_plans=()) if new.forecasts else new
        if old.server is new.server and all(a is b for a, b in zip(_inputs(old), _inputs(new), strict=True)):
            return new
        start = start_of(new, new.server)
        if start != self._start:
            self._start, self._found, self._planned = start, forecast(start), plans(start)
        if self._found == new.forecasts and self._planned == new.memory_plans:
            return new
        return replace(new, forecasts=self._found, memory_plans=self._planned)


def _inputs(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.preflight, snapshot.port, snapshot.gpu, snapshot.procs, snapshot.baseline


def start_of(snapshot: Snapshot, server: Server) -> Start:
    """The start that ``snapshot`` shows. Who listens on the port is taken from the newest look at it."""
    facts = snapshot.preflight if snapshot.preflight is not None else Preflight()
    port = snapshot.port
    if port is not None and port.port == server.port and port.answer:
        facts = replace(facts, port=port.listeners)
    if not facts.env and server.visible_devices:
        facts = replace(facts, env=(("CUDA_VISIBLE_DEVICES", server.visible_devices),))
    family = registry.get(server.family)
    version = server.version or snapshot.log.version
    cards = None if snapshot.gpu.unavailable or not snapshot.gpu.source else len(snapshot.gpu.gpus)
    return Start(
        family,
        server.args,
        facts,
        tuple(_gpus(snapshot, server, family, version)),
        version,
        snapshot.gpu.driver,
        cards,
        snapshot.baseline.memory if snapshot.baseline is not None else None,
        snapshot.baseline.memory_count if snapshot.baseline is not None else 0,
        links=snapshot.gpu.links,
        skew_s=_skew_s(snapshot),
    )


def _skew_s(snapshot: Snapshot) -> float | None:
    """By how much the log's clock is ahead of this host's, without the time zone (quarters of an hour); None before
    lines came while sgmon watched. A line can only come late: an advance is sure."""
    log = snapshot.log
    if log.clock_zero is None or log.last_byte_t is None:
        return None
    ahead = log.clock_zero - snapshot.epoch
    skew = ahead - round(ahead / ZONE_S) * ZONE_S
    live = log.last_byte_t - (snapshot.server_seen_t or 0.0) > LIVE_S
    return skew if live else None


def _gpus(snapshot: Snapshot, server: Server, family: ServerFamily, version: str) -> Iterable[RankGpu]:
    """One GPU for each rank of this node, by the family's formula."""
    by_index = {gpu.index: gpu for gpu in snapshot.gpu.gpus}
    for number in dict.fromkeys(family.start.gpus(server.args, version)):
        index = None if number is None else physical(snapshot.gpu.gpus, number, server.visible_devices)
        gpu = None if index is None else by_index.get(index)
        if gpu is not None and not gpu.error and not gpu.slices:
            yield _rank_gpu(gpu, holdings_in(snapshot, gpu))


def all_gpus(reading: GpuReading | None) -> tuple[RankGpu, ...]:
    """Every GPU that can be read, for a start whose ranks are not known."""
    gpus = reading.gpus if reading is not None else ()
    return tuple(_rank_gpu(gpu, holdings(gpu)) for gpu in gpus if not gpu.error and not gpu.slices)


def _rank_gpu(gpu: Gpu, held: tuple[Holding, ...]) -> RankGpu:
    """What others hold is known only where every holder is: an unseen one may be the rank itself."""
    others = [one for one in held if one.kind in ("orphan", "other-server", "stranger", "mps") and not _leaves(one)]
    known = all(one.kind != "unseen" and one.used_bytes is not None for one in held)
    orphans = tuple(one.pid for one in others if one.kind == "orphan")
    return RankGpu(
        rank=", ".join(gpu.ranks),
        index=gpu.index,
        total_bytes=gpu.total_bytes,
        others_bytes=sum(one.used_bytes or 0 for one in others) if known else None,
        holders="; ".join(f"{size(one.used_bytes)} by {words(one)}" for one in others[:2]),
        pid=others[0].pid if others else None,
        orphans=orphans,
        capability=_capability(gpu.name),
        reserved_bytes=gpu.reserved_bytes or 0,
        minor=gpu.minor,
    )


def _leaves(holding: Holding) -> bool:
    """Whether the process is on its way out: it has no command line any more, and its memory is free in a moment."""
    return holding.name.startswith("[") and holding.name.endswith("]")


#: compute capability of GPUs by a word of their name (developer.nvidia.com/cuda-gpus)
_GENERATIONS = {
    "V100": 7.0,
    "T4": 7.5,
    "A100": 8.0,
    "A30": 8.0,
    "A10": 8.6,
    "A10G": 8.6,
    "A40": 8.6,
    "A6000": 8.6,
    "L4": 8.9,
    "L40": 8.9,
    "L40S": 8.9,
    "4090": 8.9,
    "3090": 8.6,
    "H20": 9.0,
    "H100": 9.0,
    "H200": 9.0,
    "GH200": 9.0,
    "B100": 10.0,
    "B200": 10.0,
    "GB200": 10.0,
    "B300": 10.3,
    "GB300": 10.3,
    "5090": 12.0,
}


def _capability(name: str) -> float | None:
    """By the name alone; None for one that is not in the table."""
    return next((_GENERATIONS[word] for word in name.replace("-", " ").split() if word in _GENERATIONS), None)


def will_fail(snapshot: Snapshot) -> tuple[Forecast, ...]:
    """The forecasts of failure that still stand."""
    return tuple(one for one in snapshot.forecasts if one.level == "will-fail")


def warnings(snapshot: Snapshot) -> tuple[Forecast, ...]:
    return tuple(one for one in snapshot.forecasts if one.level == "warning")
