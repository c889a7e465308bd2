"""What ``sgmon log`` says: the JSON object (schema 1) and the readable summary."""

from __future__ import annotations

from sgmon.analyse.log import catalogue
from sgmon.model.log import LogState, Milestone
from sgmon.servers import registry
from sgmon.servers.family import ServerFamily
from sgmon.units import duration, plural, rank_list

SCHEMA = 2
_EXIT = {"ready": 0, "unhealthy": 5, "crashed": 5, "unfinished": 4}
_DEGREES = ("tp", "dp", "pp", "ep", "nnodes")
#: Milestones that the summary shows, one line each; the many in between are in --json.
_SHOWN = 24


def exit_code(state: LogState) -> int:
    """0 ready, 4 unfinished, 5 crashed (or ready and then unhealthy)."""
    return _EXIT[state.outcome]


def as_json(state: LogState, file: str) -> dict[str, object]:
    """The object of ``sgmon log --json``. Times ``t`` are seconds since the epoch, from the log's local time."""
    last, error, gap = state.last_milestone, state.error, state.longest_gap
    newest = max(state.bars, key=lambda bar: (bar.line, bar.seen_t or 0.0), default=None)
    return {
        "schema": SCHEMA,
        "file": file,
        "lines": state.lines,
        "family": state.family or None,
        "version": state.version or None,
        "topology": _topology(state),
        "what": state.what or None,
        "state": state.outcome,
        "phase": state.phase or None,
        "behind": list(state.behind),
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
        else {
            "kind": error.kind,
            "line": error.line,
            "rank": error.rank,
            "text": error.text,
            "advice": error.advice or None,
        },
        "next": next_step(state, file),
        "engines": [{"name": engine.name, **_engine(engine.state)} for engine in state.engines],
        "duration_s": _length(state),
        "longest_gap": None if gap is None else {"s": gap.s, "after_line": gap.after_line},
    }


def text(state: LogState, file: str) -> str:
    """The summary for people: the verdict first, then what it rests on, last what to do next."""
    rows = [headline(state), ""]
    rows += [f"  {engine.name}: {headline(engine.state)}" for engine in state.engines]
    rows += [""] * bool(state.engines)
    rows += _facts(state, file)
    if not state.what or state.milestones:
        rows += ["", "Milestones (line, seconds since the first dated line):"]
        rows += _milestones(state)
    if len(state.ranks) > 1:
        rows += ["", "Last milestone of each rank:"]
        rows += [f"  {names}: {what}" for what, names in _by_place(state)]
    if state.ranks_left_out:
        rows.append(f"  {state.left_out_words}")
    if state.bars:
        rows += ["", "Bars:"]
    for bar in state.bars:
        rows.append(f"  {bar.name}: {bar.done}/{bar.total}{' (finished)' if bar.finished else ''}, line {bar.line}")
    if state.error is not None:
        who = f" on {state.error.rank}" if state.error.rank else ""
        words = catalogue.of_family(state.family).error_words(state.error.kind)
        rows += ["", f"First cause{who}, line {state.error.line}: {words} ({state.error.kind})"]
        rows.append(f"  {state.error.text[:300]}")
    if state.survived is not None:
        rows += ["", f"Survived, line {state.survived.line}: {state.survived.text[:200]}"]
    return "\n".join([*rows, "", f"Next: {next_step(state, file)}"])


def next_step(state: LogState, file: str) -> str:
    """What to do now: what the log itself advises, else what is known to help, else where to look."""
    error = state.error
    if error is not None and state.outcome != "ready":
        if error.advice:
            return f"the log says: {error.advice}"
        known = catalogue.of_family(state.family).step(error.kind)
        around = f"sed -n '{max(1, error.line - 5)},{error.line + 25}p' {file}"
        return f"{known}; around the cause: {around}" if known else f"read the log around the cause: {around}"
    if state.what:
        return "give sgmon log the output of the server itself, or run sgmon on the server's host"
    if state.outcome == "ready":
        return "nothing: the server is ready"
    if not state.lines:
        return "check that the server writes to this file"
    if state.sigterm_line:
        return "find out who stopped it (a time limit, a health probe, a person), and start it again"
    if state.behind:
        return f"on the server's host: sgmon stacks (why {rank_list(list(state.behind))} is not as far as the others)"
    return "on the server's host: sgmon (it sees whether anything still moves)"


def headline(state: LogState) -> str:
    """One line: the state, the phase, and who is where."""
    last = state.last_milestone
    where = f"last milestone {last.name} (line {last.line})" if last else "no milestone in the text"
    phases = _family(state).phases
    during = phases.during(state.phase) if state.phase else "in an unknown phase"
    place = f"{during}: {_behind(state)}" if state.behind else during
    several = f" ({len(state.engines)} servers are in this text, this is the worst)" if state.engines else ""
    if state.what:
        doing = f": {state.doing}" if state.doing else ""
        proven = f" ({phases.words(state.phase)})" if state.phase else ""
        return f"NO SERVER'S LOG: this is {state.what}{doing}{proven}"
    if state.outcome == "crashed" and state.error is not None:
        rank = f" on {state.error.rank}" if state.error.rank else ""
        words = catalogue.of_family(state.family).error_words(state.error.kind)
        return f"CRASHED {during}{several}: {words}{rank}, line {state.error.line}; {where}"
    if state.outcome == "ready":
        stopped = f"; stopped by {state.stopped_by}, line {state.sigterm_line}" if state.sigterm_line else ""
        return f"READY{several}: line {state.ready_line or state.dummy_health_line}{stopped}"
    if state.outcome == "unhealthy":
        return f"UNHEALTHY{several}: ready in line {state.ready_line}, then a failed health check"
    if not state.lines:
        return "UNFINISHED: the log is empty"
    if not state.family:
        return "UNFINISHED in an unknown phase: no line says which server wrote this, and none is of a start"
    if state.sigterm_line:
        return f"UNFINISHED {place}{several}: stopped by {state.stopped_by}, line {state.sigterm_line}; {where}"
    return f"UNFINISHED {place}{several}; {where}. Text alone cannot tell slow from hung."


def _family(state: LogState) -> ServerFamily:
    return registry.get(state.family) if state.family else registry.families()[0]


def _behind(state: LogState) -> str:
    """ "TP0 and TP7 are still in the weight load, 6 ranks are past it"; of one phase: "TP1 is behind 7 other ranks in
    the weight load"."""
    names = list(state.behind)
    words = _family(state).phases.words(state.phase)
    past = len({m.rank for m in state.milestones if m.rank and m.event in ("begin", "end")} - set(names))
    listed = " and ".join(names) if len(names) < 3 else rank_list(names)
    verb = "is" if len(names) == 1 else "are"
    if state.reached == state.phase:
        return f"{listed} {verb} behind {plural(past, 'other rank')} in the {words}"
    return f"{listed} {verb} still in the {words}, {plural(past, 'rank')} {'is' if past == 1 else 'are'} past it"


def _topology(state: LogState) -> dict[str, int | None]:
    """Degrees of parallelism; None where the arguments' line should say it and does not, or is cut before it.

    Without that line: what a milestone's line says.
    """
    args = state.args
    if args is None:
        said = {name: value for made in state.milestones for name, value in made.fields}
        values = ((short, said.get(f"{short}_size", "")) for short in _DEGREES)
        return {short: int(value) if value.isdigit() else None for short, value in values}
    told = {name for name, _ in args.raw}
    log = _family(state).log
    names = dict(log.sizes) if log is not None else {}
    return {
        short: getattr(args, short) if short not in names or not told.isdisjoint((names[short], short)) else None
        for short in _DEGREES
    }


def _engine(state: LogState) -> dict[str, object]:
    error = state.error
    return {
        "state": state.outcome,
        "phase": state.phase or None,
        "error": None if error is None else {"kind": error.kind, "line": error.line, "rank": error.rank},
    }


def _facts(state: LogState, file: str) -> list[str]:
    args = state.args
    rows = [
        f"{file}: {plural(state.lines, 'line')}, {duration(_length(state))} between the first and the last dated line"
    ]
    if state.runs > 1:
        rows.append(f"{state.runs} starts are in this file; this is the last one, from line {state.run_line}")
    if args is not None:
        shape = " ".join(f"{name}={'?' if value is None else value}" for name, value in _topology(state).items())
        version = state.version or "(version not in the log)"
        port = "a port that it picks" if args.picks_port else f"port {args.port}"
        rows.append(f"{_label(state)} {version}, {args.model_path}, {shape}, {port}")
    elif state.version:
        known = "".join(f", {name}={value}" for name, value in _topology(state).items() if value is not None)
        rows.append(f"{_label(state)} {state.version}{known}")
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
    if milestone is None or milestone.t is None or state.first_t is None:
        return ""
    return f"+{duration(milestone.t - state.first_t)}"


def _length(state: LogState) -> float | None:
    if state.first_t is None or state.last_t is None:
        return None
    return state.last_t - state.first_t


def _label(state: LogState) -> str:
    return registry.get(state.family).label
