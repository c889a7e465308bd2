"""Crashed: a process is gone, or the log named a cause that nothing survives. The words; the order of death is in
``sgmon.analyse.deaths``."""

from __future__ import annotations

from sgmon.analyse.deaths.death import Death
from sgmon.analyse.deaths.order import Order, oom_killed, order_of
from sgmon.analyse.deaths.sayings import named_pid, names_a_process
from sgmon.analyse.deaths.words import by_signal, how_it_ended, names, sigkill_fact, was_asked, who
from sgmon.analyse.diagnosis.absent import expected_ranks
from sgmon.analyse.diagnosis.by_design import unresolved
from sgmon.analyse.diagnosis.cause_words import cause_words, figures
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.ended import ended, interrupted, may_be_a_shutdown
from sgmon.analyse.diagnosis.ready import port_holder, still_says_200
from sgmon.analyse.log import catalogue
from sgmon.model import Evidence, LogError, NextStep, Role, Snapshot, Verdict
from sgmon.text import clean, quoted
from sgmon.units import duration, plural, rank_list

#: seconds that an error line must stand without progress when no process died of it
_SETTLED_S = 5.0
#: the rule of a crash whose order may still become known: a line or a reading is awaited
OPEN = "process-gone-open"
#: the rule of a crash whose order is as known as it gets
SETTLED = "process-gone"
_SIGKILL = 9
#: verdicts that stand for one look longer, and the most that this look may take
_GOES_ON = frozenset({"progressing", "slow", "waiting-by-design", "will-fail", "ready", "unhealthy"})
_NEXT_LOOK_S = 2.0
#: a launcher that was asked to end has done so by then, mostly: its ranks end first
_LAUNCHER_ENDS_S = 0.9


def crashed(context: Context) -> Verdict | None:
    """A process is gone, or the log's first cause is fatal."""
    stopped = interrupted(context)
    if stopped is not None:
        return stopped
    order = order_of(context.snapshot)
    if order is not None and (order.first or order.candidates or order.taken):
        asked = ended(context, order)
        if asked is None and may_be_a_shutdown(context, order):
            return context.snapshot.verdict
        found = asked or _from_deaths(context, order)
        return context.snapshot.verdict if found.rule == OPEN and _may_read_otherwise(context, order) else found
    error = context.snapshot.log.error
    if error is not None and _is_fatal(context, error):
        return _from_log(context, error)
    return None


def restarted_facts(snapshot: Snapshot) -> tuple[Evidence, ...]:
    """Ends without which the server goes on, or whose manager starts another process: a fact, no crash."""
    order = order_of(snapshot)
    if order is None or not order.restarted:
        return ()
    pids = ", ".join(str(death.pid) for death in order.restarted[-4:])
    words = plural(len(order.restarted), "helper")
    return (Evidence("proc", f"{words} ended, and the server goes on without or with a new one: pid {pids}"),)


def _may_read_otherwise(context: Context, order: Order) -> bool:
    """These are ends that the next look may read as an end that was asked for (Ctrl-C reaches all processes at once,
    and a launcher kills its ranks): no word yet is better than a wrong one. A launcher that has ended tells at the
    next look, however soon that is; one that lives is given the time in which it ends after its ranks."""
    old, dead = context.snapshot.verdict, (*order.candidates, *order.taken)
    if old.state not in _GOES_ON or (len(dead) == 1 and dead[0].signal and not was_asked(dead[0])):
        return False
    seen_t = min(death.clock.gone_t or death.latest for death in dead)
    looked_t = next((one.last_ok_t for one in context.snapshot.probes if one.name == "procs"), None)
    if context.t - seen_t >= _NEXT_LOOK_S or (looked_t is not None and looked_t - seen_t >= _LAUNCHER_ENDS_S):
        return False
    return looked_t is None or looked_t <= seen_t or not any(death.is_launcher for death in dead)


def _from_deaths(context: Context, order: Order) -> Verdict:
    unseen = _gone_before(context, order)
    killed = [] if unseen else _killed(context, order)
    evidence = [*_causes(context, order), *killed, *_others(context, order)]
    first, cause = order.first, order.cause
    only = _only(order)
    rank = cause.rank if cause is not None and cause.rank else only.rank if only is not None else ""
    told = _told_of(context, unseen) if unseen else None
    if unseen:
        rank = told.rank if told is not None and told.rank in unseen else ""
    dead = (*((first,) if first is not None else ()), *order.candidates, *order.taken)
    since_t = min(death.latest for death in dead)
    answers = still_says_200(context, since_t)
    if answers is not None:
        evidence.insert(1, answers)
    return Verdict(
        "crashed",
        _unseen_headline(context, order, unseen, told) if unseen else _headline(context, order),
        phase=_server_phase(context),
        since_t=since_t,
        confidence=_confidence(order),
        rule=OPEN if order.open and first is None and cause is None else SETTLED,
        odd_ranks=(rank,) if rank else (),
        evidence=tuple(evidence[:5]),
        next=_log_steps(context, context.snapshot.log.error),
    )


def _only(order: Order) -> Death | None:
    """The process that died first, or the only one that may have."""
    return order.first or (order.candidates[0] if len(order.candidates) == 1 else None)


def _gone_before(context: Context, order: Order) -> tuple[str, ...]:
    """The ranks that had died and were reaped before sgmon looked, where the one that would be named as the first
    was found dead, too, by a signal that the launcher sends: it may have been taken down with them."""
    only = _only(order)
    if only is None or only.is_launcher or order.cause is not None or only.clock.alive_t is not None:
        return ()
    if only.signal not in context.family.ends.kills:
        return ()
    workers = (c for c in context.snapshot.clocks if Role.WORKER in (c.role, c.becomes) or c.role is Role.ENGINE)
    known = {clock.rank for clock in workers}
    return tuple(rank for rank in expected_ranks(context) if rank not in known)


def _told_of(context: Context, unseen: tuple[str, ...]) -> LogError | None:
    """The log's first failure where it is of one of these, or of a process that no reading has; else None."""
    error = context.snapshot.log.error
    if error is None or error.rank in unseen:
        return error
    line = next((c for c in context.snapshot.log.complaints if c.line == error.line and names_a_process(c)), None)
    return error if line is not None and named_pid(context.snapshot, line) is None else None


def _confidence(order: Order) -> float:
    if order.cause is not None or (order.first is not None and order.first.violent):
        return 0.98
    return 0.9


def _unseen_headline(context: Context, order: Order, unseen: tuple[str, ...], told: LogError | None) -> str:
    """Where ranks were gone before sgmon looked. told: see ``_told_of``."""
    if told is not None:
        return _error_headline(context, told, _phase_of(context, told.rank))
    only = _only(order)
    assert only is not None  # the one that was found dead, too
    ranks = rank_list(unseen) if all(unseen) else f"the {context.label(Role.WORKER)}"
    both = f"{ranks} and {who(context, only)}"
    return f"{both} had ended before sgmon looked {_stage(context, None)}; which first is not known"


def _headline(context: Context, order: Order) -> str:
    first, cause = order.first, order.cause
    error = context.snapshot.log.error
    if error is not None and (first is None or not first.signal) and _unresolved(context, error):
        return _error_headline(context, error, _phase_of(context, error.rank))
    if cause is not None and (first is None or first.rank in ("", cause.rank)) and not order.candidates:
        return _error_headline(context, cause, _phase_of(context, cause.rank, first.pid if first else None))
    return _unknown_first(context, order) if first is None else _alone(context, first, bool(order.taken))


def _alone(context: Context, first: Death, others: bool = False) -> str:
    """Who has ended, and how. others: some have ended since."""
    subject = "the launcher" if first.is_launcher else who(context, first)
    how = "was killed by the kernel's OOM killer" if _by_oom(context, first) else how_it_ended(first)
    ends = context.launcher is None or context.launcher.ending
    told = others or context.snapshot.log.error is not None or ends
    unaware = "" if told else "; the launcher has not noticed yet"
    return f"{subject} {how} {_stage(context, first)}{unaware}"


def _unknown_first(context: Context, order: Order) -> str:
    """Nobody can be named as the first: who died, within which time, and what is not known."""
    if len(order.candidates) == 1 and not order.taken:
        return _alone(context, order.candidates[0])
    stage = _stage(context, None)
    if order.lost is not None:
        node = "on another node" if context.args.nnodes > 1 else "that is not known"
        return f"{order.lost.rank or 'a rank'} lost the connection to a rank {node} {stage}"
    some = order.candidates or order.taken
    if len(some) == 1:
        return f"{who(context, some[0])} {how_it_ended(some[0])} {stage}"
    yet = " yet" if order.open else ""
    within = duration(max(0.1, order.span_s)) if order.candidates else ""
    timed = f" within {within}" if within else ""
    shown = names(context, some)
    return f"{shown} died{timed} {stage}{_struck(some)}; which first is not known{yet}"


def _struck(some: tuple[Death, ...]) -> str:
    """ ": the kernel's OOM killer struck 2 times", in their control group; "" if it did not, or is not known."""
    times = max(death.clock.oom or death.clock.oom_kills or 0 for death in some)
    killed = times and any(death.signal == _SIGKILL for death in some)
    return f": the kernel's OOM killer struck {plural(times, 'time')}" if killed else ""


def _stage(context: Context, first: Death | None) -> str:
    if context.has_been_ready:
        return "after it was ready"
    phase = _server_phase(context) if first is None else _phase_of(context, first.rank, first.pid)
    return context.during(phase)


def _server_phase(context: Context) -> str:
    """The phase in which it crashed: the ranks may load on without the process that has died."""
    old = context.snapshot.verdict
    return old.phase if (old.state, old.rule) == ("crashed", SETTLED) else context.phase


def _causes(context: Context, order: Order) -> list[Evidence]:
    """The end of the first, and the log's line: its own failure before it, another's complaint after it."""
    error = context.snapshot.log.error
    first = order.first or (order.candidates[0] if len(order.candidates) == 1 else None)
    found = []
    if first is not None:
        found.append(Evidence("proc", f"{who(context, first)} {how_it_ended(first)}", first.rank, first.pid))
    if error is not None:
        found.insert(0 if order.cause is not None else len(found), _error_fact(error))
    return found


def _killed(context: Context, order: Order) -> list[Evidence]:
    """Who sent SIGKILL to the first. The server's own launcher is no stranger."""
    first = order.first
    if first is None or first.signal != _SIGKILL or order.cause is not None:
        return []
    return [sigkill_fact(context, first)]


def _by_oom(context: Context, first: Death) -> bool:
    """The OOM killer's count moved, and nothing else of the server can have sent this SIGKILL."""
    return first.signal == _SIGKILL and (
        oom_killed(context.snapshot, first) or bool(first.clock.oom or first.clock.oom_kills)
    )


def _others(context: Context, order: Order) -> list[Evidence]:
    found = []
    if order.taken and order.first is None and order.cause is not None:
        found.append(Evidence("proc", f"gone: {names(context, order.taken)}"))
    elif order.taken and order.first is not None:
        found.append(Evidence("proc", f"took down with it: {names(context, order.taken)}"))
    elif order.taken and order.candidates:
        found.append(Evidence("proc", f"taken down by one of them: {names(context, order.taken)}"))
    every = (order.first, *order.candidates, *order.taken)
    launcher = next((death for death in every if death is not None and death.is_launcher), None)
    own = launcher is not None and launcher is not order.first and launcher.signal == _SIGKILL
    if own and _SIGKILL in context.family.ends.own_end and launcher not in order.candidates:
        text = "a launcher ends itself with SIGKILL (137) after most failures: no sign of the OOM killer"
        found.append(Evidence("proc", text))
    left = _left_behind(context) if launcher is not None else []
    if left:
        found.append(Evidence("proc", f"left behind, and may hold GPU memory: {', '.join(left[:5])}"))
    return found


def _left_behind(context: Context) -> list[str]:
    """Ranks and engines that live on without their launcher; ranks first. An engine keeps its workers alive."""
    ranks = {rank.pid for rank in context.ranks}
    alive = context.snapshot.procs.processes
    engines = [p for p in alive if p.alive and p.role is Role.ENGINE and p.pid not in ranks]
    return [f"{v.label} (pid {v.pid})" for v in context.ranks[:4]] + [
        f"the {context.label(p.role)} (pid {p.pid})" for p in engines
    ]


def _phase_of(context: Context, name: str, pid: int | None = None) -> str:
    """Of that rank, as it was last seen; the server's for a process that is no rank."""
    workers = [rank for rank in context.snapshot.ranks if rank.role in (Role.WORKER, Role.IMPORTING)]
    own = (rank.phase for rank in workers if rank.pid == pid or (name and rank.name == name))
    return next(own, _server_phase(context))


def _told_headline(context: Context, error: LogError) -> str:
    """ "the detokenizer (pid 4711) was killed by SIGKILL" or "... has died": of a process that the line names before
    its end is seen; "" of none."""
    line = next((c for c in context.snapshot.log.complaints if c.line == error.line and names_a_process(c)), None)
    pid = None if line is None else named_pid(context.snapshot, line)
    clock = next((c for c in context.snapshot.clocks if pid is not None and c.pid == pid), None)
    if clock is None:
        return ""
    stage = "after it was ready" if context.has_been_ready else context.in_phase
    how = by_signal(line.signal) if line is not None and line.signal is not None else "has died"
    return f"{clock.rank or f'the {context.label(clock.role)}'} (pid {clock.pid}) {how} {stage}"


def _from_log(context: Context, error: LogError) -> Verdict:
    evidence = [_error_fact(error), *_still_there(context)]
    holder = port_holder(context)
    if error.kind == "port_in_use" and holder:
        evidence.append(Evidence("port", f"{holder}; a ready line after this is the stranger's"))
    return Verdict(
        "crashed",
        _told_headline(context, error) or _error_headline(context, error, _phase_of(context, error.rank)),
        phase=context.phase,
        since_t=error.seen_t if error.seen_t is not None else context.t,
        confidence=0.9,
        rule="log-error",
        odd_ranks=(error.rank,) if error.rank else (),
        evidence=tuple(evidence),
        next=_log_steps(context, error),
    )


def _still_there(context: Context) -> list[Evidence]:
    """Who lives, and who is about to end."""
    lives = [rank for rank in context.ranks if not rank.process.ending]
    ends = [rank for rank in context.ranks if rank.process.ending]
    return [
        Evidence("proc", f"{words}: {', '.join(f'{rank.label} (pid {rank.pid})' for rank in some[:4])}")
        for words, some in (("still alive", lives), ("about to end", ends))
        if some
    ]


def _is_fatal(context: Context, error: LogError) -> bool:
    log = context.snapshot.log
    if error.kind == "port_in_use" or log.bind_error_line is not None:
        return True  # the ready line that may follow came from the stranger on our port
    later = [m for m in log.milestones if m.line > error.line]
    if later or (log.ready_line is not None and log.ready_line > error.line):
        return False  # it went on: a warning with an alarming face
    if error.kind in catalogue.of_family(log.family).fatal_kinds:
        return True
    if log.change == "ended":  # nothing more will come that could show that it was survived
        return True
    if serves_on(context, error):
        return False
    return error.seen_t is not None and context.t - error.seen_t >= _SETTLED_S


def serves_on(context: Context, error: LogError) -> bool:
    """An error of a server that was ready and whose launcher lives: a request's, or a /health that was late. Errors
    that end a process are not among them: its end is seen."""
    log = context.snapshot.log
    if log.ready_line is None or error.line < log.ready_line or context.launcher is None:
        return False
    return error.kind not in catalogue.of_family(log.family).fatal_kinds


def _error_fact(error: LogError) -> Evidence:
    return Evidence("log", f"line {error.line}: {clean(error.text, 160)}", error.rank)


def _error_headline(context: Context, error: LogError, phase: str) -> str:
    """ "TP1: out of GPU memory (KV cache): 924.00 MiB asked, 230.00 MiB free"."""
    who = f"{error.rank}: " if error.rank else ""
    words = _unresolved(context, error) or cause_words(error, catalogue.of_family(context.snapshot.log.family))
    stage = "after it was ready" if context.has_been_ready else context.phases.words(phase)
    amounts = figures(error)
    return f"{who}{words} ({stage})" + (f": {amounts}" if amounts else "")


#: ends of a rendezvous to which a name may have led that nobody knows
_NOT_MET = frozenset({"connect_timeout", "store_wait_timeout"})


def _unresolved(context: Context, error: LogError) -> str:
    """ "the rendezvous head:5000 cannot be resolved: Name or service not known", where that is why it timed out."""
    nowhere = unresolved(context) if error.kind in _NOT_MET else None
    return "" if nowhere is None else f"the rendezvous {nowhere[0]}"


def _log_steps(context: Context, error: LogError | None) -> tuple[NextStep, ...]:
    path = context.snapshot.log.path
    if not path or context.snapshot.log.kind not in ("file", "deleted", ""):
        return ()  # a command or a pipe: the log panel has its text
    if error is not None:
        start = max(1, error.line - 5)
        command = f"sed -n '{start},{error.line + 25}p' {quoted(path)}"
        return (NextStep("Read the log around the first cause", command, key="o", line=error.line),)
    return (NextStep("Read the end of the log", f"tail -n 60 {quoted(path)}"),)
