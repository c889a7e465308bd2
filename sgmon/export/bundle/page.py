"""The page of a bundle: laid out like a GitHub bug report form, so that it can be pasted there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sgmon import __version__, units
from sgmon.analyse.diagnosis import usual
from sgmon.analyse.family import family_of
from sgmon.analyse.stacks.summary import summarize, summary_lines
from sgmon.export.bundle.collect import Materials
from sgmon.export.shown import inline
from sgmon.export.text import as_text
from sgmon.history import from_snapshot
from sgmon.model import Process, Snapshot
from sgmon.servers.registry import get, role_label
from sgmon.text import clean, masked_argv

#: GitHub takes 65,536 characters
MOST_CHARS = 60_000
_TAIL_LINES = 60
_ERROR_AROUND = 12
#: what stands above a part that has no heading of its own in a family's form
_UNHEADED = {"bug": "What happened:", "reproduction": "How it was started:", "environment": "Environment:"}


def page(materials: Materials, *, log: bool, inside: Sequence[str]) -> str:
    """Markdown, not masked yet. inside: what else lies in the bundle."""
    for tail in (_TAIL_LINES, 20, 0):
        text = "\n".join(clean(line) for line in _page(materials, log, inside, tail)) + "\n"
        if len(text) <= MOST_CHARS:
            break
    return text[:MOST_CHARS]


def _page(materials: Materials, log: bool, inside: Sequence[str], tail: int) -> Iterator[str]:
    snapshot = materials.snapshot
    verdict = snapshot.verdict
    yield f"# {verdict.state}: {inline(clean(verdict.headline, 300))}"
    yield ""
    by = f" ({materials.made_by})" if materials.made_by else ""
    yield f"Made by sgmon {__version__}{by}, which watches from outside and changes nothing in the server."
    yield "Eight asterisks stand for a secret that is masked."
    for part, heading in family_of(snapshot).report:
        yield from ("", f"### {heading}" if heading else _UNHEADED[part], "")
        yield from _part(part, materials, log)
    if log:
        yield from _log(materials, tail)
    yield from _folded("Stacks of all ranks, merged", list(_stacks(snapshot)))
    yield from _folded("Ranks, GPUs, port", as_text(snapshot))
    yield from _folded(
        "Every process, from /proc",
        [
            f"{name}: {line}" if name else line
            for name, part in snapshot.parts
            for p in part.procs.processes
            for line in _process(part.family, p)
        ],
    )
    yield from _folded("Nodes side by side", list(_compared(snapshot)))
    yield from _folded("Arguments", [f"{name} = {value}" for name, value in _arguments(snapshot)])
    yield from ("", "In this bundle: " + ", ".join(inside) + ".")


def _part(part: str, materials: Materials, log: bool) -> Iterator[str]:
    """One part of the family's bug form."""
    snapshot = materials.snapshot
    if part == "bug":
        yield from _bug(snapshot, log)
        yield from ("", "Timeline:", "")
        yield from _timeline(snapshot)
    elif part == "reproduction":
        yield from _fenced(_command(snapshot))
    else:
        yield from (f"- {name}: {inline(value)}" for name, value in _environment(materials))


def stacks_text(snapshot: Snapshot) -> str:
    """Every dump in full."""
    return "\n".join(_stacks(snapshot, full=True)) + "\n" if snapshot.stacks else ""


def _bug(snapshot: Snapshot, log: bool) -> Iterator[str]:
    verdict = snapshot.verdict
    yield (
        f"State **{verdict.state}** in phase `{verdict.phase or '?'}` for "
        f"{units.age(snapshot.t - verdict.since_t)}, confidence {verdict.confidence:.0%}"
        + (f"; not like the others: {units.rank_list(verdict.odd_ranks)}" if verdict.odd_ranks else "")
        + "."
    )
    yield ""
    for fact in verdict.evidence:
        if log or fact.signal != "log":
            yield f"- {inline(fact.text)} [{fact.signal}{f' {fact.rank}' if fact.rank else ''}]"
    for hit in snapshot.causes[:3]:
        yield f"- possible cause ({hit.confidence:.0%}): {inline(hit.title)}. {inline(hit.advice)}"
    for gap in verdict.missing:
        yield f"- not seen: {gap.signal}: {inline(gap.why)}"
    words = usual.words(snapshot)
    if words:
        yield f"- {words}"


def _timeline(snapshot: Snapshot) -> Iterator[str]:
    """Milestones with seconds since the server began, and the changes of the verdict among them."""
    if snapshot.server is None:
        yield "- no server was seen"
        return
    run = from_snapshot.start_of(snapshot, from_snapshot.outcome_of(snapshot))
    began = run.started - snapshot.epoch
    rows: list[tuple[float, str]] = []
    ranks: dict[str, list[str]] = {}
    first: dict[str, tuple[float, int]] = {}
    for one in run.milestones:
        ranks.setdefault(one.name, []).append(one.rank)
        first.setdefault(one.name, (one.at_s, one.line))
    for name, (at_s, line) in first.items():
        who = units.rank_list(tuple(rank for rank in ranks[name] if rank))
        rows.append((at_s, f"line {line}: {name}{f' ({who})' if who else ''}"))
    rows += [
        (change.t - began, f"verdict: {change.state}: {clean(change.headline, 160)}") for change in snapshot.verdicts
    ]
    rows.sort(key=lambda row: row[0])
    yield "| after | what |"
    yield "|---|---|"
    yield from (f"| {units.duration(max(0.0, at_s))} | {_cell(text)} |" for at_s, text in rows[-80:])
    if run.duration_s is not None and run.outcome:
        yield ""
        yield f"{run.outcome} after {units.duration(run.duration_s)}; {run.lines} lines of log."
    for what, ours, theirs in from_snapshot.compared_with_own(run):
        yield f"{what}: {units.duration(ours)} seen from outside, {units.duration(theirs)} by the server's own clock."


def _command(snapshot: Snapshot) -> list[str]:
    server = snapshot.server
    if server is None:
        return ["(no server was seen)"]
    env = [f"{name}={value}" for name, value in snapshot.start.env] if snapshot.start is not None else []
    return [*(f"export {pair}" for pair in env), " ".join(masked_argv(server.argv))]


def _environment(materials: Materials) -> Iterator[tuple[str, str]]:
    snapshot = materials.snapshot
    server = snapshot.server
    if server is not None:
        yield get(server.family).label, f"{server.version or '?'} ({server.version_source})"
        yield "model", f"{server.args.model_path}, {from_snapshot.parallel(server.args)}, ep{server.args.ep}"
    yield from materials.versions
    yield from materials.machine
    start = snapshot.start
    if start is not None:
        cached = "" if start.cached is None else f", {start.cached:.0%} of it in the page cache at the start"
        yield "model's file system", f"{start.mount or '?'}{cached}"
    gpu = snapshot.gpu
    if gpu.unavailable:
        yield "GPUs", f"{gpu.unavailable}"
    else:
        names = [one.name for one in gpu.gpus]
        for name in dict.fromkeys(names):
            yield "GPUs", f"{names.count(name)} x {name}, driver {gpu.driver or '?'}"
    for status in snapshot.probes:
        if status.error:
            yield f"sgmon's {status.name} probe", f"{status.error} {status.remedy}".strip()


def _log(materials: Materials, tail: int) -> Iterator[str]:
    snapshot = materials.snapshot
    error = snapshot.log.error
    lines = materials.log_tail.replace("\r", "\n").splitlines()
    if error is not None:
        around = _around(materials, error.line) or [error.text]
        yield from ("", f"First error in the log, line {error.line}{f' of {error.rank}' if error.rank else ''}:", "")
        yield from _fenced([clean(line, 400) for line in around])
    if lines and tail:
        yield from _folded(
            f"Last {min(tail, len(lines))} lines of the log", [clean(line, 400) for line in lines[-tail:]]
        )


def _around(materials: Materials, number: int) -> list[str]:
    """The lines at a line number, where the log's beginning is at hand."""
    text = materials.log_head or materials.log_tail
    lines = text.split("\n")
    return lines[max(0, number - 3) : number + _ERROR_AROUND] if number <= len(lines) else []


def _stacks(snapshot: Snapshot, *, full: bool = False) -> Iterator[str]:
    server = snapshot.server
    if server is None or not snapshot.stacks:
        yield "none were taken"
        return
    found = summarize(server.pid, server.family, server.version, snapshot.stacks, snapshot.causes, snapshot.ras)
    yield from summary_lines(found, full=full)


def _process(family: str, process: Process) -> Iterator[str]:
    call = "?" if process.call is None else f"{process.call.name} {process.call.target} {process.call.note}".strip()
    states = " ".join(f"{state}:{count}" for state, count in process.thread_states)
    ended = f" GONE exit={process.exit_code} signal={process.exit_signal}" if process.gone else ""
    role = role_label(family, process.role)
    yield f"pid {process.pid} (parent {process.ppid}) {role} {process.rank}{ended}: {process.title}"
    yield (
        f"    state {process.state}, threads {process.threads} [{states}], wchan {process.wchan or '?'}, "
        f"call {call}, cpu {_number(process.cpu_s)} s, waited for a CPU {_number(process.wait_s)} s"
    )
    yield (
        f"    anon {units.size(process.rss_anon_bytes)}, file {units.size(process.rss_file_bytes)}, "
        f"read {units.size(process.read_bytes)}, written {units.size(process.write_bytes)}, "
        f"major faults {process.majflt if process.majflt is not None else '?'}, "
        f"fds {process.fd_count if process.fd_count is not None else '?'}, stdout {process.stdio[1] or '?'}"
    )
    for peer in process.tcp[:12]:
        yield f"    tcp {peer.local} {peer.remote} {peer.state}"
    for gap in process.missing:
        yield f"    not seen: {gap.signal}: {gap.why}"


def _arguments(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    if snapshot.log.args is not None and snapshot.log.args.raw:
        return snapshot.log.args.raw
    return snapshot.server.args.raw if snapshot.server is not None else ()


def _compared(snapshot: Snapshot) -> Iterator[str]:
    """Versions, flags and environment of all nodes; "!=" where they differ and should not."""
    if snapshot.compared:
        yield f"{'':3}{'':32} {' | '.join(view.name for view in snapshot.nodes)}"
    for row in snapshot.compared:
        values = ("?" if value is None else value or "not given" for value in row.values)
        yield f"{'!= ' if row.differs else '   '}{row.name:<32} {' | '.join(values)}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    yield "```"
    yield from (line.replace("```", "'''") for line in lines)
    yield "```"


def _folded(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from ("", f"<details><summary>{title}</summary>", "")
        yield from _fenced(lines)
        yield from ("", "</details>")


def _cell(text: str) -> str:
    return inline(text)
