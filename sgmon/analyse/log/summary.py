"""What ``sgmon log`` says: the JSON object (schema 1), the readable summary, the comparison."""

from __future__ import annotations

from sgmon.analyse.log.compare import Comparison, compare, since_start
from sgmon.model.log import LogState, Milestone
from sgmon.servers import registry
from sgmon.units import duration, plural, rank_list

SCHEMA = 2
_EXIT = {"ready": 0, "unhealthy": 5, "crashed": 5, "unfinished": 4}
#: Milestones that the summary shows, one line each; the many in between are in --json.
_SHOWN = 24


def exit_code(state: LogState) -> int:
    """0 ready, 4 unfinished, 5 crashed (or ready and then unhealthy)."""
    return _EXIT[state.outcome]


def as_json(state: LogState, file: str) -> dict[str, object]:
    """The object of ``sgmon log --json``. Times ``t`` are seconds since the epoch, from the log's local time."""
    args = state.args
    topology = {name: getattr(args, name) if args else None for name in ("tp", "dp", "pp", "ep", "nnodes")}
    last, error, gap = state.last_milestone, state.error, state.longest_gap
    newest = max(state.bars, key=lambda bar: (bar.line, bar.seen_t or 0.0), default=None)
    return {
        "schema": SCHEMA,
        "file": file,
        "lines": state.lines,
        "family": state.family or None,
        "version": state.version or None,
        "topology": topology,
        "state": state.outcome,
        "phase": state.phase or None,
        "last_milestone": None
        if last is None
        else {"name": last.name, "line": last.line, "rank": last.rank, "t": last.t},
        "ranks": {rank.rank: {"milestone": rank.milestone, "line": rank.line, "t": rank.t} for rank in state.ranks},
        "milestones": [
            {"name": m.name, "event": m.event, "line": m.line, "rank": m.rank, "t": m.t} for m in state.milestones
        ],
        "progress": None if newest is None else {"name": newest.name, "done": newest.done, "total": newest.total},
        "error": None
        if error is None
        else {"kind": error.kind, "line": error.line, "rank": error.rank, "text": error.text},
        "duration_s": _length(state),
        "longest_gap": None if gap is None else {"s": gap.s, "after_line": gap.after_line},
    }


def text(state: LogState, file: str) -> str:
    """The summary for people: the verdict first, then what carries it."""
    rows = [_headline(state), ""]
    rows += _facts(state, file)
    rows += ["", "Milestones (line, seconds since the first dated line):"]
    rows += _milestones(state)
    if len(state.ranks) > 1:
        rows += ["", "Last milestone of each rank:"]
        rows += [f"  {names}: {what}" for what, names in _by_place(state)]
    if state.bars:
        rows += ["", "Bars:"]
    for bar in state.bars:
        rows.append(f"  {bar.name}: {bar.done}/{bar.total}{' (finished)' if bar.finished else ''}, line {bar.line}")
    if state.error is not None:
        who = f" on {state.error.rank}" if state.error.rank else ""
        rows += ["", f"First cause{who}, line {state.error.line}: {state.error.kind}", f"  {state.error.text[:300]}"]
    return "\n".join(rows)


def comparison_text(here: LogState, there: LogState, file: str, against: str) -> str:
    """This log beside a known good one."""
    made = compare(here, there)
    rows = [_headline(here), "", f"{file}: {here.lines} of the {there.lines} lines of {against}"]
    rows.append(f"{_label(here)} {made.versions[0] or '?'} against {made.versions[1] or '?'}")
    first = made.first_divergence
    if first is None:
        rows.append("Both logs have the same milestones.")
    elif first.here is None:
        rank = f" {first.rank}" if first.rank else ""
        rows.append(
            f"First divergence:{rank} {first.name} is not in this log"
            f" (line {_line(first.there)} there, {_after(there, first.there)})."
        )
    else:
        rows.append(
            f"First divergence: {first.rank} {first.name} (line {_line(first.here)}) is not in the known log."
        )
    rows += ["", f"{'milestone':<28}{'rank':<12}{'here':>18}{'there':>18}"]
    for pair in made.pairs:
        mine = f"{_line(pair.here)} {_after(here, pair.here)}" if pair.here else "-"
        known = f"{_line(pair.there)} {_after(there, pair.there)}" if pair.there else "-"
        rows.append(f"{pair.name:<28}{pair.rank:<12}{mine:>18}{known:>18}")
    if made.args:
        rows += ["", "Arguments that differ (here, there):"]
        rows += [f"  {name}: {mine}  |  {known}" for name, mine, known in made.args]
    return "\n".join(rows)


def comparison_json(made: Comparison, against: str) -> dict[str, object]:
    """The comparison inside of ``sgmon log --json --against``."""
    first = made.first_divergence
    return {
        "file": against,
        "lines": [made.lines_here, made.lines_there],
        "versions": [made.versions[0] or None, made.versions[1] or None],
        "first_divergence": None
        if first is None
        else {"name": first.name, "rank": first.rank, "missing": "here" if first.here is None else "there"},
        "milestones": [
            {
                "name": pair.name,
                "rank": pair.rank,
                "lines": [pair.here.line if pair.here else None, pair.there.line if pair.there else None],
                "t": [pair.here.t if pair.here else None, pair.there.t if pair.there else None],
            }
            for pair in made.pairs
        ],
        "arguments": [{"name": name, "values": [mine, known]} for name, mine, known in made.args],
    }


def _headline(state: LogState) -> str:
    last = state.last_milestone
    where = f"last milestone {last.name} (line {last.line})" if last else "no milestone in the text"
    if state.outcome == "crashed" and state.error is not None:
        rank = f" on {state.error.rank}" if state.error.rank else ""
        phase = state.phase or "an unknown phase"
        return f"CRASHED in {phase}: {state.error.kind}{rank}, line {state.error.line}; {where}"
    if state.outcome == "ready":
        stopped = f"; stopped by SIGTERM, line {state.sigterm_line}" if state.sigterm_line else ""
        return f"READY: line {state.ready_line or state.dummy_health_line}{stopped}"
    if state.outcome == "unhealthy":
        return f"UNHEALTHY: ready in line {state.ready_line}, then a failed health check"
    if not state.lines:
        return "UNFINISHED: the log is empty"
    return f"UNFINISHED in {state.phase or 'an unknown phase'}: {where}. Text alone cannot tell slow from hung."


def _facts(state: LogState, file: str) -> list[str]:
    args = state.args
    rows = [
        f"{file}: {plural(state.lines, 'line')}, {duration(_length(state))} between the first and the last dated line"
    ]
    if state.runs > 1:
        rows.append(f"{state.runs} starts are in this file; this is the last one, from line {state.run_line}")
    if args is not None:
        shape = f"tp={args.tp} dp={args.dp} pp={args.pp} ep={args.ep} nnodes={args.nnodes}"
        version = state.version or "(version not in the log)"
        rows.append(f"{_label(state)} {version}, {args.model_path}, {shape}, port {args.port}")
    elif state.version:
        rows.append(f"{_label(state)} {state.version}")
    if state.longest_gap is not None:
        rows.append(f"longest silence: {duration(state.longest_gap.s)} after line {state.longest_gap.after_line}")
    if state.noise:
        rows.append(f"{plural(state.noise, 'known harmless line')} with alarming words left out")
    return rows


def _milestones(state: LogState) -> list[str]:
    groups: list[tuple[str, list[Milestone]]] = []
    for milestone in state.milestones:
        if groups and groups[-1][0] == milestone.name:
            groups[-1][1].append(milestone)
        else:
            groups.append((milestone.name, [milestone]))
    rows = []
    for name, members in groups:
        ranks = rank_list([m.rank for m in members if m.rank])
        first, last = members[0], members[-1]
        lines = str(first.line) if first.line == last.line else f"{first.line}-{last.line}"
        rows.append(f"  {lines:>11}  {_after(state, first):>8}  {name}{'  ' + ranks if ranks else ''}")
    if len(rows) > 2 * _SHOWN:
        rows = [*rows[:_SHOWN], f"  ... {len(rows) - 2 * _SHOWN} more (--json has all)", *rows[-_SHOWN:]]
    return rows or ["  none"]


def _by_place(state: LogState) -> list[tuple[str, str]]:
    places: dict[str, list[str]] = {}
    for rank in state.ranks:
        places.setdefault(rank.milestone, []).append(rank.rank)
    return [(name, rank_list(sorted(ranks))) for name, ranks in places.items()]


def _after(state: LogState, milestone: Milestone | None) -> str:
    seconds = since_start(state, milestone)
    return "" if seconds is None else f"+{duration(seconds)}"


def _line(milestone: Milestone | None) -> str:
    return "-" if milestone is None else str(milestone.line)


def _length(state: LogState) -> float | None:
    if state.first_t is None or state.last_t is None:
        return None
    return state.last_t - state.first_t


def _label(state: LogState) -> str:
    return registry.get(state.family).label
