"""What was read of a server, its port, log, folders and GPUs, as ``sgmon status --json`` has it."""

from __future__ import annotations

from collections.abc import Iterable

from sgmon.export.json_schema import (
    BarReport,
    ErrorReport,
    GpuProcessReport,
    GpuReport,
    ListenerReport,
    LogReport,
    MilestoneReport,
    MissingReport,
    PortReport,
    ServerReport,
    WatchDirReport,
)
from sgmon.export.shown import port_words, safe
from sgmon.model import Gpu, Missing, Server, Snapshot
from sgmon.text import clean, masked_argv


def server_report(server: Server) -> ServerReport:
    """Its arguments are null while nothing has told them."""
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


def gpu_report(gpu: Gpu, node: str) -> GpuReport:
    """node: whose GPU it is; "" on a single machine."""
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


def port_report(snapshot: Snapshot) -> PortReport | None:
    """None: the port has not been looked at."""
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


def log_report(snapshot: Snapshot) -> LogReport | None:
    """None: there is no log, as far as is known."""
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


def watch_dir_reports(snapshot: Snapshot) -> tuple[WatchDirReport, ...]:
    """The folders that are watched."""
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


def missing_reports(gaps: Iterable[Missing]) -> tuple[MissingReport, ...]:
    """What could not be read, and why."""
    return tuple(MissingReport(gap.signal, safe(gap.why), safe(gap.remedy)) for gap in gaps)


def rounded(value: float | None) -> float | None:
    """To one decimal; None stays None."""
    return None if value is None else round(value, 1)
