"""A watch, or a log read after the fact, made into a finished start. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from msgspec.structs import asdict

from sgmon.analyse.builds import BUILT, builds
from sgmon.analyse.diagnosis import usual
from sgmon.analyse.foreseen import will_fail
from sgmon.analyse.gpu.taken import taken
from sgmon.history.finished_start import MEMORY, FinishedStart, PassedMilestone, StartKey, flags_of
from sgmon.model import LogState, Milestone, Role, ServerArgs, Snapshot
from sgmon.patterns import regex
from sgmon.servers import registry
from sgmon.servers.family import OwnTime
from sgmon.text import safe

#: a share of the model's bytes in the page cache above which its start counts as warm
WARM = 0.5
#: also where the field was cut behind the point
_TIMING = regex(r"(\w+)=(\d+(?:\.\d+(?=[,}\s]|$)|(?=\.…|[,}\s]|$)))")


def outcome_of(snapshot: Snapshot) -> str:
    """How this start has ended: ready, crashed, stalled, unhealthy, ended (asked to); "" while it goes on."""
    state = snapshot.verdict.state
    if state in ("ready", "crashed"):
        return state
    if any(change.state == "ready" for change in snapshot.verdicts):
        return "ready"
    if state in ("stalled", "stopped"):
        return "stalled"
    return state if state in ("unhealthy", "ended") else ""


def key_of(snapshot: Snapshot) -> StartKey | None:
    """What this start is compared by; None while the model is not known."""
    server = snapshot.server
    if server is None or not server.args.model_path:
        return None
    start = snapshot.start
    return StartKey(
        model=model_name(server.args),
        version=server.version or snapshot.log.version,
        parallel=parallel(server.args),
        gpu=_gpu_name(snapshot),
        host=start.host if start is not None else "",
        mount=start.mount if start is not None else "",
        caches=_caches(snapshot),
        flags=flags_of(server.args.raw),
    )


def start_of(snapshot: Snapshot, outcome: str, own: tuple[tuple[str, float], ...] = ()) -> FinishedStart:
    """The finished start that this watch has seen."""
    server, log = snapshot.server, snapshot.log
    assert server is not None
    began_t = snapshot.began_t or 0.0
    parts = [part for _, part in snapshot.parts]  # each node has a log and a clock of its own
    passed = tuple(one for part in parts for one in _passed(part.log, _since(part, began_t)))
    quiet = [clock.longest_quiet_s for part in parts for clock in part.clocks if clock.role == Role.WORKER]
    return FinishedStart(
        key=key_of(snapshot) or StartKey("", host=snapshot.start.host if snapshot.start else ""),
        started=snapshot.epoch + began_t,
        outcome=outcome,
        duration_s=usual.ready_after_s(snapshot) if outcome == "ready" else round(snapshot.t - began_t, 2),
        lines=log.run_lines,
        pid=server.pid,
        quiet_s=max(quiet) if quiet else None,
        milestones=passed,
        gaps=_gaps(log),
        args=server.args.raw,
        env=snapshot.start.env if snapshot.start is not None else (),
        own=(*(own or own_times(log)), *own_memory(snapshot)),
        headline=safe(snapshot.verdict.headline, 300),
        log=log.path or server.log_path,
        foretold=tuple(one.rule for one in will_fail(snapshot)) if outcome == "ready" else (),
    )


def _since(snapshot: Snapshot, began_t: float) -> Callable[[Milestone], float]:
    """Seconds from the beginning of the server to a milestone of this node."""
    return lambda milestone: (snapshot.passed_t(milestone) or 0.0) - began_t


def start_of_log(log: LogState, path: str) -> FinishedStart:
    """The start that a log alone tells of; its seconds count from the first dated line. A line without a date (a bar,
    uvicorn's) has the time of the dated milestone before it."""
    args = log.args
    zero = log.first_t or 0.0
    dated = [(m.line, m.t) for m in sorted(log.milestones, key=lambda m: m.line) if m.t is not None]
    passed = _passed(log, lambda m: max((t for line, t in dated if line <= m.line), default=zero) - zero)
    return FinishedStart(
        key=StartKey(model_name(args), log.version, parallel(args), flags=flags_of(args.raw))
        if args is not None
        else StartKey("", log.version),
        started=zero,
        outcome=log.outcome,
        duration_s=_at(passed, "ready") if log.outcome == "ready" else round((log.last_t or zero) - zero, 2),
        lines=log.lines,
        milestones=passed,
        gaps=_gaps(log),
        args=args.raw if args is not None else (),
        own=own_times(log),
        headline="" if log.error is None else safe(log.error.text, 300),
        log=path,
    )


def own_times(log: LogState) -> tuple[tuple[str, float], ...]:
    """The server's own numbers, where its log has them ("Engine startup timings (s): load_weight=41.75, ...")."""
    for milestone in reversed(log.milestones):
        text = dict(milestone.fields).get("timings", "")
        if text:
            return tuple((name, float(number)) for name, number in _TIMING.findall(text) if name in _own_times())
    return ()


def own_memory(snapshot: Snapshot) -> tuple[tuple[str, float], ...]:
    """What a rank took of its GPU, as ``FinishedStart.own`` keeps it."""
    found = taken(snapshot)
    values = {} if found is None else asdict(found)
    return tuple((MEMORY + name, float(value)) for name, value in values.items() if value is not None)


def compared_with_own(run: FinishedStart) -> tuple[tuple[str, float, float], ...]:
    """(what, seconds as sgmon saw them, the server's own), for what both have measured."""
    own = dict(run.own)
    rows = []
    for kind in _own_times().values():
        took_s = _spent(run, kind.begin, kind.end)
        if took_s is not None and kind.name in own:
            rows.append((kind.words, round(took_s, 2), own[kind.name]))
    return tuple(rows)


@cache
def _own_times() -> dict[str, OwnTime]:
    """By name. Of every family: a finished start does not say which one it was."""
    return {kind.name: kind for family in registry.families() for kind in family.own_times}


def model_name(args: ServerArgs) -> str:
    """Model and revision."""
    revision = dict(args.raw).get("revision", "")
    return args.model_path.rstrip("/") + (f"@{revision}" if revision not in ("", "None") else "")


def parallel(args: ServerArgs) -> str:
    """The sizes that make two starts alike: "tp8 dp1 pp1 n1"."""
    return f"tp{args.tp} dp{args.dp} pp{args.pp} n{args.nnodes}"


def _caches(snapshot: Snapshot) -> str:
    """ "warm", "cold, kernels built": the page cache of the model, and whether kernels or graphs are built. The key
    of a start changes when it is seen to build; rows of before say nothing of it, and count as without."""
    cached = snapshot.start.cached if snapshot.start is not None else None
    pages = "" if cached is None else "warm" if cached >= WARM else "cold"
    return ", ".join(filter(None, (pages, BUILT if builds(snapshot) else "")))


def _gpu_name(snapshot: Snapshot) -> str:
    server = snapshot.server
    if server is not None and server.args.device == "cpu":
        return "CPU"
    used = [gpu.name for gpu in snapshot.gpu.gpus if gpu.ranks] or [gpu.name for gpu in snapshot.gpu.gpus]
    return ", ".join(sorted({name for name in used if name}))


def _passed(log: LogState, at_s: Callable[[Milestone], float]) -> tuple[PassedMilestone, ...]:
    """The first time that each rank passed each milestone; repeats (bars) are left out.

    A line without a date has the time at which it was read: at most that of the next dated one, for a watch may
    begin late.
    """
    found: dict[tuple[str, str], PassedMilestone] = {}
    after = float("inf")
    for milestone in sorted(log.milestones, key=lambda m: m.line, reverse=True):
        at = at_s(milestone)
        if milestone.t is not None:
            after = min(after, at)
        at = max(0.0, round(min(at, after), 2))
        found[milestone.name, milestone.rank] = PassedMilestone(
            milestone.name, at, max(1, milestone.line - log.run_line + 1), milestone.rank, milestone.phase
        )
    return tuple(sorted(found.values(), key=lambda one: one.line))


def _gaps(log: LogState) -> tuple[tuple[float, int], ...]:
    return () if log.longest_gap is None else ((log.longest_gap.s, log.longest_gap.after_line),)


def _spent(run: FinishedStart, begin: str, end: str) -> float | None:
    """The longest that a rank took from one milestone to another; the first may be one of the launcher's."""
    begun = {m.rank: m.at_s for m in run.milestones if m.name == begin}
    starts = ((m.at_s, begun.get(m.rank, begun.get(""))) for m in run.milestones if m.name == end)
    return max((at_s - begun_s for at_s, begun_s in starts if begun_s is not None), default=None)


def _at(passed: tuple[PassedMilestone, ...], name: str) -> float | None:
    return next((one.at_s for one in reversed(passed) if one.name == name), None)
