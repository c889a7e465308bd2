"""A snapshot as plain text: the lines of ``sgmon status``, and the one line of ``sgmon wait``. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon import units
from sgmon.analyse import watched_dir
from sgmon.analyse.diagnosis import usual
from sgmon.analyse.diagnosis.usual import ready_after_s
from sgmon.export import folded
from sgmon.export.folded import Row
from sgmon.export.shown import last_activity, port_words, role_label, safe, shown_processes
from sgmon.model import Server, ServerArgs, Snapshot
from sgmon.servers import registry
from sgmon.text import clean

#: states whose progress line says for how long they have lasted
_LASTING = frozenset({"suspect", "stalled", "stopped", "waiting-by-design", "unhealthy"})


def as_text(snapshot: Snapshot, everything: bool = True) -> list[str]:
    """The verdict with its evidence, then one line each for server, ranks, GPUs, port, folders and log. everything
    False: of many nodes those that say the same are one line."""
    server = snapshot.server
    folds = not everything and sum(len(part.procs.processes) for _, part in snapshot.parts) > folded.FEW
    folds = folds and bool(snapshot.nodes)
    lines = [*_verdict(snapshot), *(_facts(snapshot, server, folds) if server is not None else ())]
    return [safe(line) for line in [*lines, *([folded.ALL] if folds else [])]]


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
    if args.headless:
        return "no port (--headless)"
    return "a port that it picks" if args.picks_port else f"port {args.port}"


def _facts(snapshot: Snapshot, server: Server, folds: bool) -> Iterator[str]:
    yield from (f"node    {line}" for line in _told(_nodes(snapshot), "node", folds))
    yield from (f"differs {line}" for line in _differs(snapshot, folds))
    args = server.args
    yield (
        f"server  pid {server.pid}, {registry.get(server.family).label} {server.version or '?'}, "
        + (
            f"{safe(args.model_path) or '?'}, tp={args.tp} dp={args.dp} pp={args.pp}, {_port_given(args)}"
            if server.args_known
            else "its arguments are not known yet"
        )
    )
    yield from (f"ranks   {line}" for line in _told(_ranks(snapshot), "process", folds))
    yield from (f"usual   {line}" for line in _usual(snapshot))
    yield from (f"gpu     {line}" for line in _told(_gpus(snapshot), "GPU", folds))
    if snapshot.port is not None:
        yield f"port    {port_words(snapshot.port)}"
    now = snapshot.epoch + snapshot.t
    for folder in snapshot.watch_dirs.dirs if snapshot.watch_dirs is not None else ():
        yield f"files   {safe(folder.path)}: {watched_dir.words(folder, now)}"
    log = snapshot.log
    if log.path:
        last = "" if log.last_line is None else safe(clean(log.last_line.text, 120))
        yield f"log     {safe(log.path)}: {units.plural(log.lines, 'line')}, {units.size(log.size)}; last: {last}"


def _told(rows: Iterator[Row], noun: str, folds: bool) -> Iterator[str]:
    return folded.lines(list(rows), noun) if folds else (row.whole for row in rows)


def _where(snapshot: Snapshot, name: str, part: Snapshot) -> str:
    """ "node-b: "; of a silent one how old this is; "" on a single machine."""
    view = next((view for view in snapshot.nodes if view.name == name), None)
    if view is None:
        return ""
    old = "" if view.heard else f" {units.lasting(snapshot.t - part.t)} ago"
    return f"{safe(name)}{old}: "


def _nodes(snapshot: Snapshot) -> Iterator[Row]:
    """A row a node: its link, its own state, its clock. Those that the verdict names stand apart."""
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
        words = f"{heard}{why}, {units.plural(len(own.ranks), 'rank')}"
        apart = view.name if view.name in snapshot.verdict.nodes or not view.heard else ""
        words_of_many = words if apart else f"{words} each"
        yield Row(f"{safe(view.name)} {words}{clock}", (words, apart), safe(view.name), words_of_many)


def _differs(snapshot: Snapshot, folds: bool) -> Iterator[str]:
    """What differs between the nodes."""
    for row in snapshot.compared:
        if not row.differs:
            continue
        who: dict[str, list[str]] = {}
        for view, value in zip(snapshot.nodes, row.values, strict=True):
            if value is not None:
                who.setdefault(safe(value) or "not given", []).append(view.name)
        told = (
            f"{value} on {units.plural(len(names), 'node')}" if folds and len(names) > 3 else f"{name} {value}"
            for value, names in who.items()
            for name in (names[:1] if folds and len(names) > 3 else names)
        )
        yield f"{safe(row.name)}: {', '.join(told)}"


def _ranks(snapshot: Snapshot) -> Iterator[Row]:
    """A row a process, of all nodes. Ranks that the verdict names stand apart."""
    verdict = snapshot.verdict
    for node, part in snapshot.parts:
        where = _where(snapshot, node, part)
        for process in shown_processes(part):
            mark = last_activity(part, process)
            last_s = None if mark is None else part.t - mark.t
            call = process.call.name if process.call is not None else process.wchan
            role = role_label(part.server, process)
            does = "has ended" if process.gone else f"{process.state} in {call}"
            does = f"state {process.state}" if not process.gone and call in (None, "", "0") else does
            whole = f"{where}{process.rank or role} pid {process.pid} {does}"
            if mark is not None and last_s is not None:
                whole += f", last activity: {safe(mark.text)} {units.lasting(last_s)} ago"
            odd = process.rank in verdict.odd_ranks and (not verdict.nodes or node in verdict.nodes)
            signal = "" if mark is None else mark.signal.replace("_", " ")
            words = f"{role}, {does}" + (f", last activity: {signal}" if signal else "")
            key = (process.role, does, signal, (node, process.pid) if odd else None)
            yield Row(whole, key, safe(node), words, (process.rank,) if process.rank else (), last_s)


def _usual(snapshot: Snapshot) -> Iterator[str]:
    """How long each phase takes here, by finished starts."""
    base = snapshot.baseline
    if base is not None and base.phases and base.ready_median_s is not None:
        words = registry.get(snapshot.family).phases.words
        parts = ", ".join(f"{words(one.phase)} {units.duration(one.median_s)}" for one in base.phases)
        yield f"{parts}; ready after {units.duration(base.ready_median_s)} ({units.plural(base.count, 'start')})"


def _gpus(snapshot: Snapshot) -> Iterator[Row]:
    """A row a GPU, of all nodes; equal: memory within 5 % of the card, both idle or both busy."""
    for node, part in snapshot.parts:
        gpu, where = part.gpu, _where(snapshot, node, part)
        if gpu.unavailable:
            why = safe("; ".join(filter(None, (gpu.unavailable, gpu.remedy))))
            yield Row(f"{where}{why}", (why,), safe(node), why)
            continue
        mark = " (simulated)" if gpu.simulated else ""
        for one in gpu.gpus:
            memory = f"{units.gib(one.used_bytes)}/{units.gib(one.total_bytes)} GiB"
            who = units.rank_list(one.ranks) or "no rank"
            whole = f"{where}{one.index}{mark} {memory}, {units.percent(one.util_percent)}, {who}"
            known = one.used_bytes is not None and one.total_bytes
            busy = None if one.util_percent is None else one.util_percent >= 5
            share = round(20 * (one.used_bytes or 0) / one.total_bytes) if known and one.total_bytes else None
            words = {True: "busy, ", False: "idle, ", None: ""}[busy] + ("" if one.ranks else "no rank, ")
            used = (one.used_bytes or 0) / units.GIB, (one.total_bytes or 0) / units.GIB
            key = (one.total_bytes, share, busy, bool(one.ranks), one.error)
            yield Row(whole, key, safe(node), words, one.ranks, used=used if known else None)
