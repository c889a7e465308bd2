"""Evidence, next steps and missing signals in words: what all rules share."""

from __future__ import annotations

from sgmon.analyse import watched_dir
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.ranks.doing import doing, where
from sgmon.model import Evidence, LogLine, LogState, Missing, NextStep, Rank
from sgmon.text import clean
from sgmon.units import lasting, plural, size

#: a dated line this much older than the silence that was watched tells of silence before the watch
DATED_S = 10.0
#: a file position that has not moved for so long says something
STILL_S = 10.0
#: where the output of a server goes that writes no file (Server.log_kind)
_OUTPUT = {
    "pipe": "the server's output goes into a pipe",
    "pty": "the server's output goes to a terminal",
    "socket": "the server's output goes into a socket",
    "null": "the server's output goes to /dev/null",
    "none": "the server has no output open",
    "hidden": "where the server's output goes is hidden from this user",
}
#: a log whose last line is younger than this is growing
GROWS_S = 2.0
STEP_STACKS = NextStep("Take the stacks of all ranks, merged", "sgmon stacks", key="D")


#: changes of a log after which its silence tells nothing
_UNREAD = ("missing", "unreadable")


def log_fact(context: Context) -> Evidence:
    """The last line, and for how long the log has been silent."""
    log = context.snapshot.log
    if log.last_line is None:
        by_stack = "; the phase is the one that the stacks show" if context.snapshot.phase_source == "stack" else ""
        unread = f"the log cannot be read: {clean(log.note, 120)}" if log.change in _UNREAD else ""
        relay = context.snapshot.server.log_relay if context.snapshot.server is not None else ""
        return Evidence("log", (unread or _nothing_said(log, relay)) + by_stack)
    silent = context.t - context.log_activity_t
    text = clean(log.last_line.text, 90)
    said = _whether_it_grows(context, silent, log.last_line)
    dated = context.snapshot.epoch + context.t - log.last_line.t if log.last_line.t is not None else 0.0
    if dated > silent + DATED_S:  # it was silent before the watch began
        least = " at least" if silent >= GROWS_S and log.change != "ended" else ""
        said += f"{least}, its last dated line is {lasting(dated)} old by this machine's clock"
    if log.change in _UNREAD:
        said = f"not read for {lasting(silent)} ({clean(log.note, 80)})"
    return Evidence("log", f"{said}, {plural(log.lines, 'line')}, the last: {text}", log.last_line.rank)


def _nothing_said(log: LogState, relay: str) -> str:
    """relay: the program through which the output goes into the file; "" for none."""
    if not log.path:
        return "no log can be read"
    if not log.lines and relay:
        return f"the log is empty: the output goes through {clean(relay)}, which has passed nothing on yet"
    if not log.lines:
        return "the log is empty"
    return (
        f"the server has written nothing yet: the {plural(log.lines, 'line')} of its log were there before it began"
    )


def _whether_it_grows(context: Context, silent: float, last_line: LogLine) -> str:
    log = context.snapshot.log
    if log.change == "ended":
        return "ended"
    if silent < GROWS_S:
        return "growing" if log.activity_is_dated else "of unknown age"
    only_requests = last_line.kind == "access" and context.t - (log.last_byte_t or 0.0) < silent - GROWS_S
    return f"silent for {lasting(silent)}" + (" but for requests" if only_requests else "")


def quiet_fact(context: Context, rank: Rank) -> Evidence:
    """Which signal of a rank moved last, and when."""
    mark = rank.last_mark
    if rank.clock is None:
        return Evidence("proc", f"{rank.label}: no counters could be read", rank.name, rank.pid)
    if rank.process.cpu_s is None:
        return Evidence(
            "proc", f"{rank.label} (pid {rank.pid}): state {rank.process.state}, no counters", rank.name, rank.pid
        )
    last = f"last activity {lasting(context.t - mark.t)} ago ({mark.text})" if mark else "no activity yet"
    return Evidence("proc", f"{rank.label} (pid {rank.pid}): {where(rank)}; {last}", rank.name, rank.pid)


def files_facts(context: Context) -> list[Evidence]:
    """The watched folders, one fact each."""
    seen = context.snapshot.watch_dirs
    now = context.snapshot.epoch + context.t
    return [
        Evidence("files", f"{clean(folder.path, 60)}: {watched_dir.words(folder, now)}", value=folder.size_bytes)
        for folder in (seen.dirs if seen is not None else ())[:2]
    ]


def position_fact(context: Context, rank: Rank) -> Evidence | None:
    """How far it has read the file in which it went on last, and for how long no further; None: none is known, or it
    goes on. A fact beside others: what does not move is no proof, and what moves is no life."""
    at = rank.clock.position if rank.clock is not None else None
    if at is None or context.t - at.since_t < STILL_S:
        return None
    name = clean(at.target.rsplit("/", 1)[-1], 80)
    text = f"{rank.label} is at {size(at.pos)} of {name}, and no further for {since(context, at.since_t)}"
    return Evidence("fd", text, rank.name, rank.pid)


def doing_fact(context: Context, rank: Rank) -> Evidence:
    does = doing(rank, context.t)
    return Evidence(does.signal or "proc", f"{rank.label} (pid {rank.pid}) {does.words}", rank.name, rank.pid)


def wait_fact(context: Context, rank: Rank) -> Evidence:
    """What it waits in; its counters where that cannot be told."""
    if not rank.wait.text:
        return quiet_fact(context, rank)
    return Evidence(
        rank.wait.signal or "proc", f"{rank.label} (pid {rank.pid}) {rank.wait.text}", rank.name, rank.pid
    )


def dump_step(rank: Rank) -> NextStep:
    return NextStep(f"See where {rank.label} is", f"py-spy dump --nonblocking --pid {rank.pid}", key="d")


def since(context: Context, t: float) -> str:
    return lasting(max(0.0, context.t - t))


def missing_signals(context: Context) -> tuple[Missing, ...]:
    """Which rules could not be evaluated, and what would give them."""
    found: dict[str, Missing] = {}
    snapshot = context.snapshot
    for source in (
        snapshot.procs.missing,
        *(v.process.missing for v in context.ranks),
        snapshot.port.missing if snapshot.port is not None else (),
        *(d.missing for d in snapshot.stacks[-4:]),
    ):
        for item in source:
            found.setdefault(item.signal, item)
    if snapshot.gpu.unavailable and context.args.device != "cpu":
        found.setdefault(
            "gpu",
            Missing(
                "gpu",
                f"a rank that spins in a collective cannot be told from one that works: {snapshot.gpu.unavailable}",
                snapshot.gpu.remedy,
            ),
        )
    if context.blind and context.ranks:
        why = "neither CPU time nor bytes of any rank can be read: hung or slow cannot be told"
        found.setdefault("counters", Missing("counters", why, "run sgmon as the server's user, or as root"))
    server = snapshot.server
    if server is not None and not snapshot.log.lines and server.log_kind not in ("file", "deleted", ""):
        known = next((gap for gap in server.missing if gap.signal == "log"), None)
        words = _OUTPUT.get(server.log_kind, "the server writes no file")
        found.setdefault("log", known or Missing("log", words, "give --log FILE"))
    if context.guessed_long and context.ranks:
        why = "neither a line of the log nor a stack proves how far the start has come"
        found.setdefault("phase", Missing("phase", why, "press D, or: sgmon stacks; or give the file with --log"))
    for probe in snapshot.probes:
        if probe.in_flight_since_t is not None and snapshot.t - probe.in_flight_since_t > 10:
            hung = lasting(snapshot.t - probe.in_flight_since_t)
            found.setdefault(probe.name, Missing(probe.name, f"the {probe.name} probe has hung for {hung}"))
        elif probe.error:
            found.setdefault(probe.name, Missing(probe.name, probe.error, probe.remedy))
    return tuple(found.values())
