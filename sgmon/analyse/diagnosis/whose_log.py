"""Whose words the log has: an earlier start may have written them, or another server that has the same file."""

from __future__ import annotations

from sgmon.analyse.diagnosis.absent import expected_ranks
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.ready import port_is_ours
from sgmon.model import ESSENTIAL_ROLES, Evidence, NextStep, Role, Verdict
from sgmon.model.rank import FRESH_S
from sgmon.servers.family import Discovery
from sgmon.text import clean
from sgmon.units import duration, rank_list

#: what was there when sgmon came is read so soon after it
AT_ONCE_S = 2.0
#: CPU time of a launcher that has failed does not go on for so long
WORKS_S = 3.0
#: milestones that a launcher passes before it has any child
_BEFORE_CHILDREN = frozenset({"args", "launch", "gate"})


def earlier_start(context: Context) -> Verdict | None:
    """All that the log tells was there before sgmon came, it tells of ranks or of an end, and the launcher has no
    child: either they are gone, or it is a new start that has not printed its arguments yet."""
    snapshot, log, launcher = context.snapshot, context.snapshot.log, context.launcher
    if launcher is None or launcher.ending or launcher.halted or not _spawns(context):
        return None
    if any(clock.pid != launcher.pid for clock in snapshot.clocks) or _has_a_child(context):
        return None
    if port_is_ours(snapshot.port):
        return None
    told = [m.seen_t for m in log.milestones if m.name not in _BEFORE_CHILDREN]
    told += [log.error.seen_t] if log.error is not None else []
    if not told and log.sigterm_line is None and log.ready_line is None:
        return None
    clock = next((one for one in snapshot.clocks if one.pid == launcher.pid), None)
    came_t = max(snapshot.server_seen_t or 0.0, clock.first_t or 0.0 if clock is not None else 0.0)
    if any(t is None or t > came_t + AT_ONCE_S for t in told):
        return None
    marks = clock.marks if clock is not None else ()
    works = any(mark.signal == "cpu" and mark.t > came_t + WORKS_S for mark in marks)
    others = snapshot.server.log_writers if snapshot.server is not None else ()
    about = f"the log ({_last_word(context)}) may tell of {_who_else(others)}"
    headline = (
        f"the launcher works and has no children yet: {about}"
        if works
        else f"whether this start has failed or has just begun is not known: {about}"
    )
    facts = [Evidence("proc", f"the launcher (pid {launcher.pid}) lives and has no children", pid=launcher.pid)]
    age_s = _age_s(context)
    if age_s is not None:
        facts.append(Evidence("proc", f"its process was started {duration(age_s)} ago"))
    return Verdict(
        "progressing" if works else "unknown",
        headline,
        phase="launch" if works else "",
        confidence=0.6,
        rule="earlier-start",
        evidence=(*_error_facts(context), *facts),
        next=() if works else (NextStep("Look for longer", "sgmon status --seconds 10"),),
    )


def shared_log(context: Context) -> Verdict | None:
    """The log tells of a failure, a shutdown or of being ready while all processes of this server live, and another
    server writes, or may write, into the same file: whose line it is cannot be told."""
    snapshot, log, launcher = context.snapshot, context.snapshot.log, context.launcher
    others = snapshot.server.log_writers if snapshot.server is not None else ()
    if not (others or log.unended) or launcher is None or launcher.ending or not _all_live(context):
        return None
    port = snapshot.port
    if port is not None and port.status == 200 and port_is_ours(port):
        claim = log.error is not None and not (log.ready_line or 0) > log.error.line
        if not claim and log.sigterm_line is None:
            return None
        return _answers(context, others)
    false_ready = log.ready_line is not None and port is not None and port.answer == "refused"
    if log.error is None and log.sigterm_line is None and not false_ready:
        return None
    if log.error is None and log.sigterm_line is None and _works(context):
        return _goes_on(context, others)
    return Verdict(
        "unknown",
        f"whose lines the log has ({_last_word(context)}) is not known: "
        f"{_who_writes(others)}, and all processes of this server live",
        confidence=0.7,
        rule="shared-log",
        evidence=(*_error_facts(context), *_facts(context, others)),
        next=(NextStep("Give each server a log of its own"),),
    )


def _works(context: Context) -> bool:
    """Whether a rank or the launcher of this server was seen to move lately."""
    marks = (clock.marks[0].t for clock in context.snapshot.clocks if clock.gone_t is None and clock.marks)
    return context.t - max(marks, default=-FRESH_S - 1.0) <= FRESH_S


def _goes_on(context: Context, others: tuple[int, ...]) -> Verdict:
    """The other server is ready, and this one still starts."""
    return Verdict(
        "progressing",
        f"its processes work; in which phase they are is not known: {_who_writes(others)}",
        confidence=0.6,
        rule="shared-log",
        evidence=_facts(context, others),
        next=(NextStep("Give each server a log of its own"),),
    )


def _answers(context: Context, others: tuple[int, ...]) -> Verdict:
    port = context.snapshot.port
    assert port is not None
    return Verdict(
        "ready",
        f"the server is ready on {port.where}",
        phase="serving",
        confidence=0.9,
        rule="ready",
        evidence=(
            Evidence("port", f"{port.path} on {port.where} says 200, and the listening socket is the server's own"),
            *_facts(context, others),
            *_error_facts(context),
        ),
    )


def _who_writes(others: tuple[int, ...]) -> str:
    if others:
        return f"the server of pid {', '.join(map(str, others))} writes into the same file"
    return "an earlier start in the same file has not ended there, and may still write"


def _who_else(others: tuple[int, ...]) -> str:
    if others:
        return f"the server of pid {', '.join(map(str, others))}, which writes into the same file"
    return "an earlier start"


def _facts(context: Context, others: tuple[int, ...]) -> tuple[Evidence, ...]:
    named = [rank.label for rank in context.ranks if rank.role is Role.WORKER and rank.name]
    alive = f"the launcher and {rank_list(named)} live" if named else "the launcher and its children live"
    return Evidence("log", _who_writes(others)), Evidence("proc", alive)


def _error_facts(context: Context) -> tuple[Evidence, ...]:
    error = context.snapshot.log.error
    return () if error is None else (Evidence("log", f"line {error.line}: {clean(error.text, 160)}", error.rank),)


def _last_word(context: Context) -> str:
    """ "an error in line 12", "a shutdown in line 12", "the ready line 12", "up to line 12"."""
    log = context.snapshot.log
    if log.error is not None:
        return f"an error in line {log.error.line}"
    if log.sigterm_line is not None:
        return f"a shutdown in line {log.sigterm_line}"
    if log.ready_line is not None:
        return (
            f"work on requests in line {log.ready_line}" if log.ready_by_work else f"the ready line {log.ready_line}"
        )
    return f"up to line {log.lines}"


def _spawns(context: Context) -> bool:
    """Whether this launcher has children of its own when its ranks live."""
    discovery: Discovery = context.family.discovery
    if not context.args.known or discovery.by_ray(context.args):
        return False
    return bool(discovery.expected_children(Role.LAUNCHER, context.args, context.version))


def _has_a_child(context: Context) -> bool:
    """Whether a process of it lives that it starts with its ranks."""
    roles = ESSENTIAL_ROLES | {Role.RESOURCE_TRACKER}
    return any(p.role in roles and p.role is not Role.LAUNCHER for p in context.snapshot.procs.processes)


def _all_live(context: Context) -> bool:
    """Whether every rank that the arguments ask for lives here, and nothing of this server was seen to end."""
    expected = expected_ranks(context)
    alive = {rank.name for rank in context.ranks if rank.role in (Role.WORKER, Role.IMPORTING)}
    ended = any(clock.gone_t is not None for clock in context.snapshot.clocks)
    ending = any(rank.process.ending for rank in context.ranks)
    return bool(expected) and set(expected) <= alive and not (ended or ending)


def _age_s(context: Context) -> float | None:
    server = context.snapshot.server
    if server is None or server.started_epoch is None:
        return None
    return context.snapshot.epoch + context.t - server.started_epoch
