"""A snapshot as the object of ``sgmon status --json``. Secrets are masked and foreign text is cleaned here. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from sgmon.analyse.diagnosis import usual
from sgmon.analyse.diagnosis.usual import ready_after_s
from sgmon.analyse.gpu.taken import taken
from sgmon.export.json_schema import (
    SCHEMA,
    ActivityReport,
    BarReport,
    CauseReport,
    ChangeReport,
    ComparedReport,
    ErrorReport,
    EvidenceReport,
    ForecastReport,
    GpuProcessReport,
    GpuReport,
    ListenerReport,
    LogReport,
    MemoryPlanReport,
    MilestoneReport,
    MissingReport,
    NodeReport,
    PortReport,
    RankReport,
    ServerReport,
    StatusReport,
    StepReport,
    UsualMilestoneReport,
    UsualReport,
    WaitReport,
    WatchDirReport,
)
from sgmon.export.shown import all_safe, last_activity, port_words, role_label, safe, shown_processes
from sgmon.model import Gpu, Mark, Missing, NodeReading, NodeView, Process, Rank, Server, Snapshot, WaitKind
from sgmon.model.plan import MemoryPlan, MemoryTaken
from sgmon.model.preflight import Level
from sgmon.text import clean, masked_argv


def status_report(snapshot: Snapshot) -> StatusReport:
    """The whole object, every text in it without escapes and secrets."""
    return all_safe(_report(snapshot))


def _report(snapshot: Snapshot) -> StatusReport:
    verdict = snapshot.verdict
    readable = [(name, part.gpu) for name, part in snapshot.parts if not part.gpu.unavailable]
    gpu = snapshot.gpu
    return StatusReport(
        schema=SCHEMA,
        t=round(snapshot.epoch + snapshot.t, 3),
        server=None if snapshot.server is None else _server(snapshot.server),
        state=verdict.state,
        phase=verdict.phase,
        since_s=round(max(0.0, snapshot.t - verdict.since_t), 1),
        ready_after_s=_rounded(ready_after_s(snapshot)) if verdict.state == "ready" else None,
        confidence=round(verdict.confidence, 2),
        headline=safe(verdict.headline),
        rule=verdict.rule,
        odd_ranks=verdict.odd_ranks,
        evidence=tuple(
            EvidenceReport(
                fact.signal,
                fact.rank,
                fact.pid,
                safe(fact.text),
                safe(fact.value) if isinstance(fact.value, str) else fact.value,
            )
            for fact in verdict.evidence
        ),
        missing=_missing(verdict.missing),
        next=tuple(StepReport(safe(step.text), safe(step.command)) for step in verdict.next),
        causes=_causes(snapshot),
        ranks=_ranks(snapshot),
        gpus=tuple(_gpu(one, name) for name, reading in readable for one in reading.gpus) if readable else None,
        gpu_note=safe(gpu.unavailable) or ("simulated" if gpu.simulated else gpu.source),
        port=_port(snapshot),
        log=_log(snapshot),
        watch_dirs=_watch_dirs(snapshot),
        usual=_usual(snapshot),
        verdicts=tuple(
            ChangeReport(round(change.t, 1), change.state, safe(change.headline)) for change in snapshot.verdicts
        ),
        forecasts=tuple(
            ForecastReport(one.rule, safe(one.check), one.level.value, safe(one.text), safe(one.why), one.phase)
            for one in snapshot.forecasts
            if one.level is not Level.OK
        ),
        memory_plans=tuple(_memory_plan(one, taken(snapshot)) for one in snapshot.memory_plans),
        nodes=tuple(_node(snapshot, view) for view in snapshot.nodes),
        odd_nodes=verdict.nodes,
        compared=tuple(
            ComparedReport(
                row.kind, safe(row.name), tuple(None if one is None else safe(one) for one in row.values), row.differs
            )
            for row in snapshot.compared
        ),
    )


def _node(snapshot: Snapshot, view: NodeView) -> NodeReport:
    own, link = view.snapshot, view.reading or NodeReading(view.name, "live")
    said_t = max(own.t, link.since_t or 0.0)
    return NodeReport(
        name=safe(view.name),
        link=link.state,
        why=safe(link.why),
        remedy=safe(link.remedy),
        heard=view.heard,
        silent_s=None if view.heard else round(max(0.0, snapshot.t - said_t), 1),
        clock_offset_s=link.offset_s,
        clock_error_s=link.offset_error_s,
        round_trip_s=link.round_trip_s,
        hostname=safe(link.hostname),
        collector=link.collector,
        python=link.python,
        bytes_per_s=link.bytes_per_s,
        state=own.verdict.state,
        phase=own.phase,
        headline=safe(own.verdict.headline),
        ranks=tuple(rank.name for rank in own.ranks),
        server=None if own.server is None else _server(own.server),
        port=_port(own),
        log=_log(own),
    )


def _memory_plan(plan: MemoryPlan, took: MemoryTaken | None) -> MemoryPlanReport:
    return MemoryPlanReport(
        gpu=plan.gpu,
        ranks=safe(plan.ranks),
        free_bytes=plan.free_bytes,
        context_bytes=plan.context_bytes,
        weights_bytes=plan.weights_bytes,
        kv_bytes=plan.kv_bytes,
        kv_tokens=plan.tokens,
        reserve_bytes=plan.reserve_bytes,
        share=plan.share,
        share_from=plan.share_from,
        learned=plan.learned,
        taken_weights_bytes=None if took is None else took.weights_bytes,
        taken_kv_bytes=None if took is None else took.kv_bytes,
        taken_graph_bytes=None if took is None else took.graph_bytes,
    )


def _missing(gaps: Iterable[Missing]) -> tuple[MissingReport, ...]:
    return tuple(MissingReport(gap.signal, safe(gap.why), safe(gap.remedy)) for gap in gaps)


def _causes(snapshot: Snapshot) -> tuple[CauseReport, ...]:
    return tuple(
        CauseReport(
            id=hit.id,
            title=safe(hit.title),
            confidence=hit.confidence,
            ranks=hit.ranks,
            evidence=tuple(safe(text) for text in hit.evidence),
            advice=safe(hit.advice),
            command=safe(hit.command),
            sources=hit.sources,
        )
        for hit in snapshot.causes
    )


def _server(server: Server) -> ServerReport:
    args, known = server.args, server.args_known
    return ServerReport(
        family=server.family,
        pid=server.pid,
        started=server.started_epoch,
        version=server.version or None,
        version_source=server.version_source,
        model=safe(args.model_path) if known else None,
        host=args.host if known else None,
        port=server.port,
        port_missing=server.port_missing,
        tp=args.tp if known else None,
        dp=args.dp if known else None,
        pp=args.pp if known else None,
        ep=args.ep if known else None,
        nnodes=args.nnodes if known else None,
        node_rank=args.node_rank if known else None,
        args_known=known,
        args_source=server.args_source,
        argv=masked_argv(server.argv),
    )


def _ranks(snapshot: Snapshot) -> tuple[RankReport, ...]:
    found: list[RankReport] = []
    heard = {view.name: view.heard for view in snapshot.nodes}
    for name, part in snapshot.parts:
        by_pid = {rank.pid: rank for rank in part.ranks}
        rows = [_rank(part, process, by_pid.get(process.pid)) for process in shown_processes(part)]
        if not heard.get(name, True):  # what it was; what it is now nobody knows
            rows = [replace(row, rank_state=None if row.rank_state is None else "unknown") for row in rows]
        found += (replace(row, node=safe(name)) for row in rows)
    return tuple(found)


def _rank(snapshot: Snapshot, process: Process, rank: Rank | None) -> RankReport:
    """rank: None for a process that is no subject of the verdict."""
    clock = next((clock for clock in snapshot.clocks if clock.pid == process.pid), None)
    return RankReport(
        rank=process.rank,
        rank_inferred=process.rank_inferred,
        role=process.role.value,
        role_label=role_label(snapshot.server, process),
        pid=process.pid,
        state=process.state,
        rank_state=None if rank is None else rank.state.value,
        wait=None if rank is None else _wait(rank),
        gone=process.gone,
        exit_code=process.exit_code,
        exit_signal=process.exit_signal,
        milestone=None if rank is None or not rank.passed else rank.passed[-1].name,
        phase=None if rank is None else rank.phase or None,
        cpu_percent=None if clock is None else _rounded(clock.cpu_percent),
        read_bytes_s=None if clock is None else _rounded(clock.read_rate),
        rss_anon_bytes=process.rss_anon_bytes,
        rss_file_bytes=process.rss_file_bytes,
        wchan=process.wchan,
        call=None if process.call is None else process.call.name,
        call_target=None if process.call is None else safe(process.call.target),
        same_log=process.same_log,
        shards=None if process.shards is None else len(process.shards.names),
        compilers=len(process.compilers),
        last_sign_of_life=_activity(last_activity(snapshot, process), snapshot.t),
        missing=_missing(process.missing),
    )


def _wait(rank: Rank) -> WaitReport | None:
    wait = rank.wait
    if wait.kind is WaitKind.NONE:
        return None
    return WaitReport(wait.kind.value, safe(wait.text), safe(wait.target), wait.holder)


def _activity(mark: Mark | None, t: float) -> ActivityReport | None:
    return None if mark is None else ActivityReport(mark.signal, round(t - mark.t, 1), safe(mark.text))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _gpu(gpu: Gpu, node: str) -> GpuReport:
    return GpuReport(
        node=safe(node),
        index=gpu.index,
        name=safe(gpu.name),
        used_bytes=gpu.used_bytes,
        total_bytes=gpu.total_bytes,
        util_percent=gpu.util_percent,
        power_w=gpu.power_w,
        temperature_c=gpu.temperature_c,
        ranks=gpu.ranks,
        ranks_inferred=gpu.ranks_inferred,
        error=safe(gpu.error),
        processes=tuple(GpuProcessReport(p.pid, p.rank, safe(p.name), p.used_bytes) for p in gpu.processes),
    )


def _port(snapshot: Snapshot) -> PortReport | None:
    port = snapshot.port
    if port is None:
        return None
    return PortReport(
        host=port.host,
        port=port.port or None,
        port_missing=safe(port.port_missing),
        answer=port.answer,
        status=port.status,
        latency_s=None if port.latency_s is None else round(port.latency_s, 3),
        listeners=tuple(ListenerReport(one.address, one.pid, one.ours, safe(one.name)) for one in port.listeners),
        text=port_words(port),
    )


def _log(snapshot: Snapshot) -> LogReport | None:
    log, server = snapshot.log, snapshot.server
    if not log.path and (server is None or not server.log_kind):
        return None
    milestone, error = log.last_milestone, log.error
    return LogReport(
        path=safe(log.path) or (safe(server.log_path) if server else ""),
        kind=log.kind or (server.log_kind if server else ""),
        lines=log.lines,
        size_bytes=log.size,
        quiet_s=None
        if log.last_activity_t is None or not log.activity_is_dated
        else round(snapshot.t - log.last_activity_t, 1),
        phase=log.phase,
        last_milestone=None
        if milestone is None
        else MilestoneReport(milestone.name, milestone.line, milestone.rank, milestone.t),
        bars=tuple(BarReport(bar.name, bar.done, bar.total) for bar in log.bars),
        error=None if error is None else ErrorReport(error.kind, error.line, error.rank, safe(error.text)),
        last_line=None if log.last_line is None else safe(clean(log.last_line.text, 300)),
        note=safe(log.note or log.left_out_words),
    )


def _watch_dirs(snapshot: Snapshot) -> tuple[WatchDirReport, ...]:
    seen = snapshot.watch_dirs
    now = snapshot.epoch + snapshot.t
    return tuple(
        WatchDirReport(
            path=safe(folder.path),
            files=folder.files,
            size_bytes=folder.size_bytes,
            used_bytes=folder.used_bytes,
            newest_age_s=None if folder.newest_epoch is None else round(max(0.0, now - folder.newest_epoch), 1),
            cut=folder.cut,
            note=safe(folder.note),
        )
        for folder in (seen.dirs if seen is not None else ())
    )


def _usual(snapshot: Snapshot) -> UsualReport | None:
    """From finished starts; None when there is none to compare with."""
    base = snapshot.baseline
    if base is None:
        return None
    coming = usual.next_usual(snapshot)
    return UsualReport(
        starts=base.count,
        like=base.like,
        ready_median_s=base.ready_median_s,
        ready_p90_s=base.ready_p90_s,
        eta_s=_rounded(usual.eta_s(snapshot)),
        next=None if coming is None else UsualMilestoneReport(coming.name, coming.line, coming.median_s),
        text=usual.words(snapshot),
    )
