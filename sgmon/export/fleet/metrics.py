"""A snapshot as metrics. Labels are bounded: states, phases and milestones come from tables, ranks and GPUs are those
of the server, foreign text is cleaned, masked and cut. Pure; no library of any exporter."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sgmon import __version__
from sgmon.analyse.diagnosis.usual import ready_after_s
from sgmon.analyse.phase_times import phase_seconds
from sgmon.export.fleet.answers import last_activity_t
from sgmon.export.shown import safe
from sgmon.model import Snapshot
from sgmon.model.node import NODE_STATES
from sgmon.model.preflight import Level
from sgmon.model.rank import RankState
from sgmon.model.verdict import STATES
from sgmon.servers import registry

#: characters of a label that holds foreign text
LABEL_CHARS = 120

Labels = tuple[tuple[str, str], ...]


class Metric(Struct, frozen=True):
    """A gauge. unit: "seconds", "bytes" ..., "" for none; it is the end of the name. samples: (labels, value)."""

    name: str
    help: str
    samples: tuple[tuple[Labels, float], ...]
    unit: str = ""


def metrics(snapshot: Snapshot, *, age_s: float = 0.0) -> tuple[Metric, ...]:
    """All metrics of a snapshot that is ``age_s`` old. A value that is not known has no sample."""
    made = (*_watch(snapshot, age_s), *_start(snapshot), *_ranks(snapshot), *_gpus(snapshot), *_nodes(snapshot))
    return tuple(metric for metric in made if metric.samples)


def _watch(snapshot: Snapshot, age_s: float) -> Iterator[Metric]:
    verdict, server = snapshot.verdict, snapshot.server
    yield Metric("sgmon_info", "Version of sgmon.", (((("version", __version__),), 1.0),))
    yield _seconds("sgmon_snapshot_age", "Time since sgmon last read anything.", age_s)
    yield Metric(
        "sgmon_state",
        "State of the verdict: 1 for the one that holds.",
        tuple(((("state", state),), float(state == verdict.state)) for state in STATES),
    )
    yield _seconds("sgmon_state_age", "How long the state has held.", max(0.0, snapshot.t - verdict.since_t))
    yield _plain("sgmon_confidence", "Confidence of the verdict, 0 to 1; a judgement.", verdict.confidence)
    yield _plain("sgmon_restarts", "Starts of the server that were seen after the first.", snapshot.restarts)
    if server is not None:
        labels = (
            ("family", _label(server.family)),
            ("version", _label(server.version)),
            ("model", _label(server.args.model_path if server.args_known else "")),
        )
        yield Metric("sgmon_server_info", "The watched server.", ((labels, 1.0),))


def _start(snapshot: Snapshot) -> Iterator[Metric]:
    began_t, moved_t, eta = snapshot.began_t, last_activity_t(snapshot), snapshot.eta
    now = snapshot.verdict.phase or snapshot.phase
    table = registry.get(snapshot.family).phases if snapshot.family else None
    if table is not None:
        yield Metric(
            "sgmon_phase",
            "Phase of the start: 1 for the one that it is in.",
            tuple(((("phase", phase.name),), float(phase.name == now)) for phase in table.phases),
        )
    if began_t is not None:
        yield _seconds("sgmon_start_age", "Time since the server's process began.", max(0.0, snapshot.t - began_t))
    if moved_t is not None:
        yield _seconds("sgmon_quiet", "Time since anything of the server showed activity.", snapshot.t - moved_t)
    log_t = snapshot.log.last_activity_t
    if log_t is not None and snapshot.log.activity_is_dated:
        yield _seconds(
            "sgmon_log_quiet", "Time since the log's last line that tells of activity.", snapshot.t - log_t
        )
    yield _plain("sgmon_log_lines", "Lines of the log that were read.", snapshot.log.lines)
    if eta.remains_s is not None:
        yield _seconds("sgmon_ready_in", "Time until ready, from finished starts like this one.", eta.remains_s)
    took_s = ready_after_s(snapshot)
    if took_s is not None:
        yield _seconds("sgmon_ready_after", "How long the start took until ready.", took_s)
    if eta.usual_s is not None:
        yield _seconds("sgmon_usual_ready_after", "Median of finished starts like this one.", eta.usual_s)
    passed = tuple((one, snapshot.passed_t(one)) for one in snapshot.log.milestones)
    if began_t is not None:
        first: dict[str, float] = {}
        for one, t in passed:
            if t is not None:
                first.setdefault(one.name, max(0.0, t - began_t))
        yield Metric(
            "sgmon_milestone_seconds",
            "When a milestone was first passed, in seconds since the server's process began.",
            tuple(((("milestone", _label(name)),), at_s) for name, at_s in first.items()),
            "seconds",
        )
    yield Metric(
        "sgmon_phase_duration_seconds",
        "How long a phase took, from its first milestone to the next phase's.",
        tuple(
            ((("phase", _label(phase)),), took)
            for phase, took in phase_seconds((one.phase, t) for one, t in passed if t is not None)
        ),
        "seconds",
    )
    levels = {level: 0 for level in Level if level is not Level.OK}
    for forecast in snapshot.forecasts:
        if forecast.level in levels:
            levels[forecast.level] += 1
    yield Metric(
        "sgmon_forecasts",
        "What will or may fail later in this start.",
        tuple(((("level", level.value),), float(count)) for level, count in levels.items()),
    )


def _ranks(snapshot: Snapshot) -> Iterator[Metric]:
    odd = frozenset(snapshot.verdict.odd_ranks)
    nodes = tuple(dict.fromkeys(rank.node for rank in snapshot.ranks))
    named = tuple((rank, (("node", _label(rank.node)), ("rank", _label(rank.name)))) for rank in snapshot.ranks)
    yield Metric(
        "sgmon_ranks",
        "Ranks by state of their process.",
        tuple(
            (
                (("node", _label(node)), ("state", state.value)),
                float(sum(rank.node == node and rank.state is state for rank in snapshot.ranks)),
            )
            for node in nodes
            for state in RankState
        ),
    )
    yield Metric(
        "sgmon_rank_culprit",
        "Ranks that hold the start up, or died first.",
        tuple((labels, 1.0) for rank, labels in named if rank.name in odd),
    )
    yield Metric(
        "sgmon_rank_quiet_seconds",
        "Time since a rank showed activity that counts.",
        tuple((labels, round(rank.quiet_s(snapshot.t), 1)) for rank, labels in named),
        "seconds",
    )
    yield Metric(
        "sgmon_rank_anonymous_memory_bytes",
        "Resident anonymous memory of a rank's process.",
        tuple(
            (labels, float(rank.process.rss_anon_bytes))
            for rank, labels in named
            if rank.process.rss_anon_bytes is not None
        ),
        "bytes",
    )


def _gpus(snapshot: Snapshot) -> Iterator[Metric]:
    gpus = tuple(
        (gpu, (("node", _label(node)), ("gpu", str(gpu.index)), ("rank", _label(" ".join(gpu.ranks)))))
        for node, part in snapshot.parts
        for gpu in part.gpu.gpus
    )
    readings: tuple[tuple[str, str, str, tuple[float | None, ...]], ...] = (
        ("memory_used", "bytes", "Used GPU memory.", tuple(gpu.used_bytes for gpu, _ in gpus)),
        ("memory_total", "bytes", "GPU memory of the device.", tuple(gpu.total_bytes for gpu, _ in gpus)),
        ("utilization", "percent", "Utilisation of the GPU.", tuple(gpu.util_percent for gpu, _ in gpus)),
        ("power", "watts", "Power draw of the GPU.", tuple(gpu.power_w for gpu, _ in gpus)),
    )
    for name, unit, words, values in readings:
        known = tuple(
            (labels, float(value)) for (_, labels), value in zip(gpus, values, strict=True) if value is not None
        )
        yield Metric(f"sgmon_gpu_{name}_{unit}", words, known, unit)


def _nodes(snapshot: Snapshot) -> Iterator[Metric]:
    """Of several machines: the link to each, and its clock."""
    readings = tuple((_label(view.name), view.reading) for view in snapshot.nodes if view.reading is not None)
    yield Metric(
        "sgmon_node_state",
        "Link to a node: 1 for the state that holds.",
        tuple(
            ((("node", name), ("state", state)), float(reading.state == state))
            for name, reading in readings
            for state in NODE_STATES
        ),
    )
    yield Metric(
        "sgmon_node_clock_offset_seconds",
        "Clock of a node minus the clock of this machine.",
        tuple(((("node", name),), reading.offset_s) for name, reading in readings if reading.offset_s is not None),
        "seconds",
    )


def _plain(name: str, words: str, value: float) -> Metric:
    return Metric(name, words, (((), float(value)),))


def _seconds(name: str, words: str, value: float) -> Metric:
    return Metric(f"{name}_seconds", words, (((), round(float(value), 3)),), "seconds")


def _label(text: str | None) -> str:
    """Foreign text as the value of a label."""
    words = safe(text)
    return words if len(words) <= LABEL_CHARS else words[: LABEL_CHARS - 1] + "…"
