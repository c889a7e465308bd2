"""A snapshot as JSON (schema 1) or as plain text. Secrets are masked here, once, for every way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgmon import units
from sgmon.analyse import watched_dir
from sgmon.analyse.diagnosis import usual
from sgmon.history import from_snapshot
from sgmon.model import ActivityClock, Gpu, Server, Snapshot
from sgmon.text import clean, mask, masked_argv

SCHEMA = 1
#: states whose headline says what stands, and not for how long
_LASTING = frozenset({"suspect", "stalled", "stopped", "waiting-by-design", "unhealthy"})
#: a log that was there when the watch began is read within this time
_LATE_S = 5.0
_SHOWN_ROLES = frozenset({"launcher", "scheduler", "importing", "dp_controller", "detokenizer"})


def as_json(snapshot: Snapshot) -> dict[str, Any]:
    """The object of ``sgmon status --json``. Unknown values are null; ``missing`` says why."""
    verdict = snapshot.verdict
    return {
        "schema": SCHEMA,
        "t": round(snapshot.epoch + snapshot.t, 3),
        "server": _server(snapshot.server),
        "state": verdict.state,
        "phase": verdict.phase,
        "since_s": round(max(0.0, snapshot.t - verdict.since_t), 1),
        "confidence": round(verdict.confidence, 2),
        "headline": _safe(verdict.headline),
        "rule": verdict.rule,
        "odd_ranks": list(verdict.odd_ranks),
        "evidence": [
            {
                "signal": fact.signal,
                "rank": fact.rank,
                "pid": fact.pid,
                "text": _safe(fact.text),
                "value": _safe(fact.value) if isinstance(fact.value, str) else fact.value,
            }
            for fact in verdict.evidence
        ],
        "missing": [
            {"signal": gap.signal, "why": _safe(gap.why), "remedy": _safe(gap.remedy)} for gap in verdict.missing
        ],
        "next": [{"text": _safe(step.text), "command": _safe(step.command)} for step in verdict.next],
        "causes": [
            {
                "id": hit.id,
                "title": _safe(hit.title),
                "confidence": hit.confidence,
                "ranks": list(hit.ranks),
                "evidence": [_safe(text) for text in hit.evidence],
                "advice": _safe(hit.advice),
                "command": _safe(hit.command),
                "sources": list(hit.sources),
            }
            for hit in snapshot.causes
        ],
        "ranks": _ranks(snapshot),
        "gpus": None if snapshot.gpu.unavailable else [_gpu(gpu) for gpu in snapshot.gpu.gpus],
        "gpu_note": _safe(snapshot.gpu.unavailable)
        or ("simulated" if snapshot.gpu.simulated else snapshot.gpu.source),
        "port": _port(snapshot),
        "log": _log(snapshot),
        "watch_dirs": _watch_dirs(snapshot),
        "usual": _usual(snapshot),
        "verdicts": [
            {"t": round(change.t, 1), "state": change.state, "headline": _safe(change.headline)}
            for change in snapshot.verdicts
        ],
    }


def as_text(snapshot: Snapshot) -> list[str]:
    """The verdict with its evidence, then one line each for ranks, GPUs, port and log."""
    verdict = snapshot.verdict
    lines = [f"{verdict.state.upper()}{_since(snapshot)}: {_safe(verdict.headline)}"]
    lines += [f"  - {_safe(fact.text)}  [{_source(fact.signal, fact.rank)}]" for fact in verdict.evidence]
    for step in verdict.next:
        lines.append(f"  > {_safe(step.text)}" + (f": {_safe(step.command)}" if step.command else ""))
    lines += [f"  = {hit.title} ({hit.confidence:.0%}): {_safe(hit.advice)}" for hit in snapshot.causes[:3]]
    lines += [f"  ? {gap.signal}: {_safe(gap.why)} {_safe(gap.remedy)}".rstrip() for gap in verdict.missing]
    server = snapshot.server
    if server is None:
        return lines
    lines.append(
        f"server  pid {server.pid}, SGLang {server.version or '?'}, {_safe(server.args.model_path) or '?'}, "
        f"tp={server.args.tp} dp={server.args.dp} pp={server.args.pp}, port {server.args.port}"
    )
    lines += [f"ranks   {line}" for line in _rank_lines(snapshot)]
    lines += [f"gpu     {line}" for line in _gpu_lines(snapshot)]
    if snapshot.port is not None:
        lines.append(f"port    {port_words(snapshot)}")
    now = snapshot.epoch + snapshot.t
    for folder in snapshot.watch_dirs.dirs if snapshot.watch_dirs is not None else ():
        lines.append(f"files   {_safe(folder.path)}: {watched_dir.words(folder, now)}")
    log = snapshot.log
    if log.path:
        last = "" if log.last_line is None else _safe(clean(log.last_line.text, 120))
        lines.append(f"log     {_safe(log.path)}: {log.lines} lines, {units.size(log.size)}; last: {last}")
    return lines


def _since(snapshot: Snapshot) -> str:
    """ " after 34s" for a ready server whose start was timed, else for how long this watch has seen the state."""
    if snapshot.verdict.state == "ready":
        took_s = ready_after_s(snapshot)
        if took_s is not None:
            return f" after {units.duration(took_s)}"
    seen_s = snapshot.t - snapshot.verdict.since_t
    return f" (for {units.age(seen_s)})" if seen_s >= 1.0 else ""


def ready_after_s(snapshot: Snapshot) -> float | None:
    """How long the start took; None where neither the log nor this watch has the time of its end."""
    ready = next((one for one in snapshot.log.milestones if one.name == "ready"), None)
    seen_t = snapshot.server_seen_t
    if ready is None or seen_t is None:
        return None
    if ready.t is None and (ready.seen_t is None or ready.seen_t - seen_t < _LATE_S):
        return None  # no date, and it was there when the watch began
    return from_snapshot.start_of(snapshot, "ready").duration_s


def progress_line(snapshot: Snapshot) -> str:
    """One line for a terminal or a job log: elapsed, phase, bar, state."""
    verdict = snapshot.verdict
    began = snapshot.began_t
    lasts = f" for {units.age(snapshot.t - verdict.since_t)}" if verdict.state in _LASTING else ""
    parts = [f"[{units.duration(snapshot.t - (began or 0.0))}]", f"{verdict.state}{lasts}"]
    if verdict.phase:
        parts.append(verdict.phase)
    live = [bar for bar in snapshot.log.bars if not bar.finished]
    if live:
        parts.append(f"{live[-1].name} {live[-1].done}/{live[-1].total}")
    return " ".join(parts) + f": {_safe(verdict.headline)}{eta_words(snapshot)}"


def eta_words(snapshot: Snapshot) -> str:
    """ "; ready in about 3m10s (usually 8m30s, 10 starts)"; "" where there is no number."""
    base, remains = snapshot.baseline, usual.eta_s(snapshot)
    if base is None or base.ready_median_s is None or snapshot.verdict.state not in usual.UNDER_WAY:
        return ""
    takes = f"usually {units.duration(base.ready_median_s)}, {units.plural(base.count, 'start')}"
    if remains is None:
        return f"; later than usual ({takes})"
    return f"; ready in about {units.duration(remains)} ({takes})"


def port_words(snapshot: Snapshot) -> str:
    """What the port says, in words."""
    port = snapshot.port
    if port is None:
        return "not looked at yet"
    where = f"{port.host}:{port.port}"
    owner = ""
    for listener in port.listeners:
        whose = {True: "the server's own", False: "ANOTHER process", None: "owner unknown"}[listener.ours]
        name = f" {_safe(listener.name)}" if listener.name else ""
        owner = f", held by pid {listener.pid or '?'}{name} ({whose})"
    words = {
        "refused": "nothing listens",
        "mute": "accepts, but does not answer",
        "reset": "resets the connection (TLS?)",
        "timeout": "connect times out",
        "skipped": "not probed",
    }.get(port.answer, f"{port.path} {port.status}")
    latency = f" in {units.duration(port.latency_s)}" if port.latency_s is not None else ""
    note = f" ({_safe(port.note)})" if port.note else ""
    return f"{where} {words}{latency}{owner}{note}"


def _safe(text: str | float | None) -> str:
    return mask(clean(str(text))) if text else ""


def _source(signal: str, rank: str) -> str:
    return f"{signal} {rank}" if rank else signal


def _server(server: Server | None) -> dict[str, Any] | None:
    if server is None:
        return None
    args = server.args
    return {
        "pid": server.pid,
        "started": server.started_epoch,
        "version": server.version or None,
        "version_source": server.version_source,
        "model": _safe(args.model_path),
        "host": args.host,
        "port": args.port,
        "tp": args.tp,
        "dp": args.dp,
        "pp": args.pp,
        "ep": args.ep,
        "nnodes": args.nnodes,
        "node_rank": args.node_rank,
        "args_source": server.args_source,
        "argv": list(masked_argv(server.argv)),
    }


def _ranks(snapshot: Snapshot) -> list[dict[str, Any]]:
    clocks = {clock.pid: clock for clock in snapshot.clocks}
    last = {rank.rank: rank for rank in snapshot.log.ranks}
    rows = []
    for process in snapshot.procs.processes:
        if process.role not in _SHOWN_ROLES:
            continue
        clock = clocks.get(process.pid)
        in_log = last.get(process.rank) if process.role in ("scheduler", "importing") else None
        rows.append(
            {
                "rank": process.rank,
                "rank_inferred": process.rank_inferred,
                "role": process.role,
                "pid": process.pid,
                "state": process.state,
                "gone": process.gone,
                "exit_code": process.exit_code,
                "exit_signal": process.exit_signal,
                "milestone": None if in_log is None else in_log.milestone,
                "phase": None if in_log is None else in_log.phase,
                "cpu_percent": _rounded(clock, lambda c: c.cpu_percent),
                "read_bytes_s": _rounded(clock, lambda c: c.read_rate),
                "rss_anon_bytes": process.rss_anon_bytes,
                "rss_file_bytes": process.rss_file_bytes,
                "wchan": process.wchan,
                "call": None if process.call is None else process.call.name,
                "call_target": None if process.call is None else _safe(process.call.target),
                "same_log": process.same_log,
                "shards": None if process.shards is None else len(process.shards.names),
                "compilers": len(process.compilers),
                "last_sign_of_life": None
                if clock is None or not clock.marks
                else {
                    "signal": clock.marks[0].signal,
                    "age_s": round(snapshot.t - clock.marks[0].t, 1),
                    "text": _safe(clock.marks[0].text),
                },
                "missing": [
                    {"signal": gap.signal, "why": _safe(gap.why), "remedy": _safe(gap.remedy)}
                    for gap in process.missing
                ],
            }
        )
    return rows


def _rounded(clock: ActivityClock | None, pick: Callable[[ActivityClock], float | None]) -> float | None:
    value = None if clock is None else pick(clock)
    return None if value is None else round(value, 1)


def _gpu(gpu: Gpu) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": _safe(gpu.name),
        "used_bytes": gpu.used_bytes,
        "total_bytes": gpu.total_bytes,
        "util_percent": gpu.util_percent,
        "power_w": gpu.power_w,
        "temperature_c": gpu.temperature_c,
        "ranks": list(gpu.ranks),
        "ranks_inferred": gpu.ranks_inferred,
        "error": _safe(gpu.error),
        "processes": [
            {"pid": p.pid, "rank": p.rank, "name": _safe(p.name), "used_bytes": p.used_bytes} for p in gpu.processes
        ],
    }


def _port(snapshot: Snapshot) -> dict[str, Any] | None:
    port = snapshot.port
    if port is None:
        return None
    return {
        "host": port.host,
        "port": port.port,
        "answer": port.answer,
        "status": port.status,
        "latency_s": None if port.latency_s is None else round(port.latency_s, 3),
        "listeners": [
            {"address": one.address, "pid": one.pid, "ours": one.ours, "name": _safe(one.name)}
            for one in port.listeners
        ],
        "text": port_words(snapshot),
    }


def _log(snapshot: Snapshot) -> dict[str, Any] | None:
    log = snapshot.log
    server = snapshot.server
    if not log.path and (server is None or not server.log_kind):
        return None
    milestone, error = log.last_milestone, log.error
    quiet = None if log.last_activity_t is None else round(snapshot.t - log.last_activity_t, 1)
    return {
        "path": _safe(log.path) or (_safe(server.log_path) if server else ""),
        "kind": log.kind or (server.log_kind if server else ""),
        "lines": log.lines,
        "size_bytes": log.size,
        "quiet_s": quiet,
        "phase": log.phase,
        "last_milestone": None
        if milestone is None
        else {
            "name": milestone.name,
            "line": milestone.line,
            "rank": milestone.rank,
            "t": milestone.t,
        },
        "bars": [{"name": bar.name, "done": bar.done, "total": bar.total} for bar in log.bars],
        "error": None
        if error is None
        else {
            "kind": error.kind,
            "line": error.line,
            "rank": error.rank,
            "text": _safe(error.text),
        },
        "last_line": None if log.last_line is None else _safe(clean(log.last_line.text, 300)),
        "note": _safe(log.note),
    }


def _watch_dirs(snapshot: Snapshot) -> list[dict[str, Any]]:
    seen = snapshot.watch_dirs
    now = snapshot.epoch + snapshot.t
    return [
        {
            "path": _safe(folder.path),
            "files": folder.files,
            "size_bytes": folder.size_bytes,
            "used_bytes": folder.used_bytes,
            "newest_age_s": None if folder.newest_epoch is None else round(max(0.0, now - folder.newest_epoch), 1),
            "cut": folder.cut,
            "note": _safe(folder.note),
        }
        for folder in (seen.dirs if seen is not None else ())
    ]


def _usual(snapshot: Snapshot) -> dict[str, Any] | None:
    """From finished starts; null when there is none to compare with."""
    base = snapshot.baseline
    if base is None:
        return None
    remains, coming = usual.eta_s(snapshot), usual.next_usual(snapshot)
    return {
        "starts": base.count,
        "like": base.like,
        "ready_median_s": base.ready_median_s,
        "ready_p90_s": base.ready_p90_s,
        "eta_s": None if remains is None else round(remains, 1),
        "next": None if coming is None else {"milestone": coming.name, "line": coming.line, "s": coming.median_s},
        "text": usual.words(snapshot),
    }


def _rank_lines(snapshot: Snapshot) -> list[str]:
    lines = []
    clocks = {clock.pid: clock for clock in snapshot.clocks}
    for process in snapshot.procs.processes:
        if process.role not in _SHOWN_ROLES:
            continue
        clock = clocks.get(process.pid)
        sign = ""
        if clock is not None and clock.marks:
            mark = clock.marks[0]
            sign = f", last sign of life: {_safe(mark.text)} {units.age(snapshot.t - mark.t)} ago"
        call = process.call.name if process.call is not None else process.wchan or "?"
        name = process.rank or process.role
        lines.append(f"{name} pid {process.pid} {process.state} in {call}{sign}")
    return lines


def _gpu_lines(snapshot: Snapshot) -> list[str]:
    if snapshot.gpu.unavailable:
        return [_safe(f"{snapshot.gpu.unavailable} {snapshot.gpu.remedy}".strip())]
    mark = " (simulated)" if snapshot.gpu.simulated else ""
    return [
        f"{gpu.index}{mark} {units.gib(gpu.used_bytes)}/{units.gib(gpu.total_bytes)} GiB, "
        f"{units.percent(gpu.util_percent)}, {units.rank_list(gpu.ranks) or 'no rank'}"
        for gpu in snapshot.gpu.gpus
    ]
