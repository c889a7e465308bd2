"""A snapshot as the object of ``sgmon status --json``. Secrets are masked and foreign text is cleaned here. Pure."""

from __future__ import annotations

from sgmon.analyse.diagnosis import usual
from sgmon.analyse.diagnosis.usual import ready_after_s
from sgmon.analyse.gpu.taken import taken
from sgmon.export.json_ranks import rank_reports
from sgmon.export.json_readings import (
    gpu_report,
    log_report,
    missing_reports,
    port_report,
    rounded,
    server_report,
    watch_dir_reports,
)
from sgmon.export.json_schema import (
    SCHEMA,
    CauseReport,
    ChangeReport,
    ComparedReport,
    EvidenceReport,
    ForecastReport,
    MemoryPlanReport,
    NodeReport,
    StatusReport,
    StepReport,
    UsualMilestoneReport,
    UsualReport,
)
from sgmon.export.shown import all_safe, safe
from sgmon.model import NodeReading, NodeView, Snapshot
from sgmon.model.plan import MemoryPlan, MemoryTaken
from sgmon.model.preflight import Level


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
        server=None if snapshot.server is None else server_report(snapshot.server),
        state=verdict.state,
        phase=verdict.phase,
        since_s=round(max(0.0, snapshot.t - verdict.since_t), 1),
        ready_after_s=rounded(ready_after_s(snapshot)) if verdict.state == "ready" else None,
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
        missing=missing_reports(verdict.missing),
        next=tuple(StepReport(safe(step.text), safe(step.command)) for step in verdict.next),
        causes=_causes(snapshot),
        ranks=rank_reports(snapshot),
        gpus=tuple(gpu_report(one, name) for name, reading in readable for one in reading.gpus) if readable else None,
        gpu_note=safe(gpu.unavailable) or ("simulated" if gpu.simulated else gpu.source),
        port=port_report(snapshot),
        log=log_report(snapshot),
        watch_dirs=watch_dir_reports(snapshot),
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
        server=None if own.server is None else server_report(own.server),
        port=port_report(own),
        log=log_report(own),
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
        eta_s=rounded(usual.eta_s(snapshot)),
        next=None if coming is None else UsualMilestoneReport(coming.name, coming.line, coming.median_s),
        text=usual.words(snapshot),
    )
