"""A snapshot as plain text: the lines of ``sgmon status``, and the one line of ``sgmon wait``. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon import units
from sgmon.analyse import watched_dir
from sgmon.analyse.diagnosis import usual
from sgmon.analyse.diagnosis.usual import ready_after_s
from sgmon.export.shown import last_activity, port_words, role_label, safe, shown_processes
from sgmon.model import Server, ServerArgs, Snapshot
from sgmon.servers import registry
from sgmon.text import clean

#: states whose progress line says for how long they have lasted
_LASTING = frozenset({"suspect", "stalled", "stopped", "waiting-by-design", "unhealthy"})


def as_text(snapshot: Snapshot) -> list[str]:
    """The verdict with its evidence, then one line each for server, ranks, GPUs, port, folders and log."""
    lines = [*_verdict(snapshot), *(_facts(snapshot, snapshot.server) if snapshot.server is not None else ())]
    return [safe(line) for line in lines]


def progress_line(snapshot: Snapshot) -> str:
    """One line for a terminal or a job log: elapsed, state, phase, bar, headline, time to ready."""
    verdict = snapshot.verdict
    lasts = f" {units.state_age(verdict.state, snapshot.t - verdict.since_t)}" if verdict.state in _LASTING else ""
    parts = [f"[{units.duration(snapshot.t - (snapshot.began_t or 0.0))}] {verdict.state}{lasts}"]
    phase = registry.get(snapshot.family).phases.words(verdict.phase) if verdict.phase else ""
    if phase and phase not in verdict.headline:
        parts.append(phase)
    live = [bar for bar in snapshot.log.bars if not bar.finished]
    if live:
        parts.append(f"{live[-1].label} {live[-1].done}/{live[-1].total}")
    return safe(", ".join(parts) + f": {verdict.headline}{eta_words(snapshot)}")


def eta_words(snapshot: Snapshot) -> str:
    """ "; ready in about 3m10s (usually 8m30s, 10 starts)"; "" where there is no number."""
    base, remains = snapshot.baseline, usual.eta_s(snapshot)
    if base is None or base.ready_median_s is None or snapshot.verdict.state not in usual.UNDER_WAY:
        return ""
    takes = f"usually {units.duration(base.ready_median_s)}, {units.plural(base.count, 'start')}"
    if remains is None:
        return f"; later than usual ({takes})"
    return f"; ready in about {units.duration(remains)} ({takes})"


def _verdict(snapshot: Snapshot) -> Iterator[str]:
    verdict = snapshot.verdict
    yield f"{verdict.state.upper()}{_since(snapshot)}: {safe(verdict.headline)}"
    for fact in verdict.evidence:
        yield f"  - {safe(fact.text)}  [{' '.join(filter(None, (fact.signal, fact.rank)))}]"
    for step in verdict.next:
        yield f"  > {safe(step.text)}" + (f": {safe(step.command)}" if step.command else "")
    yield from (f"  = {hit.title} ({hit.confidence:.0%}): {safe(hit.advice)}" for hit in snapshot.causes[:3])
    for gap in verdict.missing:
        remedy = f"; {safe(gap.remedy)}" if gap.remedy else ""
        yield f"  ? {gap.signal}: {safe(gap.why)}{remedy}"


def _since(snapshot: Snapshot) -> str:
    """ " after 34s" for a ready server whose start was timed, else for how long this watch has seen the state."""
    took_s = ready_after_s(snapshot) if snapshot.verdict.state == "ready" else None
    if took_s is not None:
        usual_s = snapshot.eta.usual_s
        usually = "" if usual_s is None else f" (usually {units.duration(usual_s)})"
        return f" after {units.duration(took_s)}{usually}"
    seen_s = snapshot.t - snapshot.verdict.since_t
    return f" ({units.state_age(snapshot.verdict.state, seen_s)})" if seen_s >= 1.0 else ""


def _port_given(args: ServerArgs) -> str:
    """ "port 30000"."""
    if args.uds:
        return f"UNIX socket {safe(args.uds)}"
    return "a port that it picks" if args.picks_port else f"port {args.port}"


def _facts(snapshot: Snapshot, server: Server) -> Iterator[str]:
    if snapshot.nodes:
        yield from _nodes(snapshot)
    args = server.args
    yield (
        f"server  pid {server.pid}, {registry.get(server.family).label} {server.version or '?'}, "
        + (
            f"{safe(args.model_path) or '?'}, tp={args.tp} dp={args.dp} pp={args.pp}, {_port_given(args)}"
            if server.args_known
            else "its arguments are not known yet"
        )
    )
    for name, part in snapshot.parts:
        yield from (f"ranks   {_where(snapshot, name, part)}{line}" for line in _ranks(part))
    yield from (f"usual   {line}" for line in _usual(snapshot))
    for name, part in snapshot.parts:
        yield from (f"gpu     {_where(snapshot, name, part)}{line}" for line in _gpus(part))
    if snapshot.port is not None:
        yield f"port    {port_words(snapshot.port)}"
    now = snapshot.epoch + snapshot.t
    for folder in snapshot.watch_dirs.dirs if snapshot.watch_dirs is not None else ():
        yield f"files   {safe(folder.path)}: {watched_dir.words(folder, now)}"
    log = snapshot.log
    if log.path:
        last = "" if log.last_line is None else safe(clean(log.last_line.text, 120))
        yield f"log     {safe(log.path)}: {log.lines} lines, {units.size(log.size)}; last: {last}"


def _where(snapshot: Snapshot, name: str, part: Snapshot) -> str:
    """ "node-b: "; of a silent one how old this is; "" on a single machine."""
    view = next((view for view in snapshot.nodes if view.name == name), None)
    if view is None:
        return ""
    old = "" if view.heard else f" {units.lasting(snapshot.t - part.t)} ago"
    return f"{safe(name)}{old}: "


def _nodes(snapshot: Snapshot) -> Iterator[str]:
    """A line a node: its link, its own state, its clock; then what differs between them."""
    for view in snapshot.nodes:
        own, link = view.snapshot, view.reading
        said_t = max(own.t, link.since_t or 0.0) if link is not None else own.t
        state = f"{own.verdict.state} in {own.phase or 'start'}" if own.server is not None else "no server"
        heard = state if view.heard else f"no word for {units.lasting(snapshot.t - said_t)}"
        why = f": {safe(link.why)}" if link is not None and link.why else ""
        clock = ""
        if link is not None and link.offset_s is not None:
            error = f" (known to {link.offset_error_s * 1000:.0f} ms)" if link.offset_error_s is not None else ""
            clock = f", clock {link.offset_s:+.3f} s{error}"
        yield f"node    {safe(view.name)} {heard}{why}, {units.plural(len(own.ranks), 'rank')}{clock}"
    for row in snapshot.compared:
        if row.differs:
            told = (
                f"{view.name} {safe(value) or 'not given'}"
                for view, value in zip(snapshot.nodes, row.values, strict=True)
                if value is not None
            )
            yield f"differs {safe(row.name)}: {', '.join(told)}"


def _ranks(snapshot: Snapshot) -> Iterator[str]:
    for process in shown_processes(snapshot):
        mark = last_activity(snapshot, process)
        last = "" if mark is None else f", last activity: {safe(mark.text)} {units.lasting(snapshot.t - mark.t)} ago"
        call = process.call.name if process.call is not None else process.wchan or "?"
        name = process.rank or role_label(snapshot.server, process)
        does = "has ended" if process.gone else f"{process.state} in {call}"
        yield f"{name} pid {process.pid} {does}{last}"


def _usual(snapshot: Snapshot) -> Iterator[str]:
    """How long each phase takes here, by finished starts."""
    base = snapshot.baseline
    if base is not None and base.phases and base.ready_median_s is not None:
        words = registry.get(snapshot.family).phases.words
        parts = ", ".join(f"{words(one.phase)} {units.duration(one.median_s)}" for one in base.phases)
        yield f"{parts}; ready after {units.duration(base.ready_median_s)} ({units.plural(base.count, 'start')})"


def _gpus(snapshot: Snapshot) -> Iterator[str]:
    gpu = snapshot.gpu
    if gpu.unavailable:
        yield safe("; ".join(filter(None, (gpu.unavailable, gpu.remedy))))
        return
    mark = " (simulated)" if gpu.simulated else ""
    for one in gpu.gpus:
        memory = f"{units.gib(one.used_bytes)}/{units.gib(one.total_bytes)} GiB"
        who = units.rank_list(one.ranks) or "no rank"
        yield f"{one.index}{mark} {memory}, {units.percent(one.util_percent)}, {who}"
