"""Crashed: a worker is gone, or the log named a cause that nothing survives. The first cause, not the last line."""

from __future__ import annotations

from sgmon.analyse.diagnosis.cause_words import cause_words, figures
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.ready import port_holder
from sgmon.analyse.log import catalogue
from sgmon.model import ActivityClock, Evidence, LogError, NextStep, Role, Verdict
from sgmon.text import clean
from sgmon.units import plural

_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    15: "SIGTERM",
}
#: seconds that an error line must stand without progress when no process died of it
_SETTLED_S = 5.0
#: deaths this close were seen in one reading: which came first is not in /proc
AT_ONCE_S = 0.5
#: kinds by which a launcher names the rank that died
_NAMES_THE_DEAD = frozenset({"killed_sigkill", "killed_sigterm", "rank_died"})
#: kinds that follow from a process that is gone: who is gone says more
_CONSEQUENCES = frozenset(
    {"killed_sigkill", "killed_sigterm", "rank_died", "child_failed", "peer_lost", "tcpstore_lost"}
)


def shut_down(context: Context) -> Verdict | None:
    """Asked to end by SIGTERM after it was ready: neither a crash nor a hang."""
    log = context.snapshot.log
    if log.sigterm_line is None or (log.error is not None and log.error.line < log.sigterm_line):
        return None
    fact = Evidence("log", f"SIGTERM is in log line {log.sigterm_line}")
    if context.launcher is not None:
        return Verdict(
            "unhealthy",
            "the server is shutting down: it was sent SIGTERM",
            phase="serving" if context.was_ready else context.phase,
            confidence=0.95,
            rule="shutting-down",
            evidence=(fact, Evidence("proc", f"the launcher (pid {context.launcher.pid}) still lives")),
        )
    return Verdict(
        "waiting",
        "the server was shut down by SIGTERM and is gone",
        confidence=0.95,
        rule="ended",
        evidence=(fact, Evidence("proc", "its processes are gone")),
    )


def crashed(context: Context) -> Verdict | None:
    """A process is gone, or the log's first cause is fatal."""
    dead = sorted(
        (c for c in context.snapshot.clocks if c.gone_t is not None),
        key=lambda c: (c.gone_t or 0.0, not _violent(context, c), not _led(c), c.role == Role.LAUNCHER, c.pid),
    )
    error = context.snapshot.log.error
    if dead:
        return _from_death(context, dead, error)
    if error is not None and _is_fatal(context, error):
        return _from_log(context, error)
    return None


def _from_death(context: Context, dead: list[ActivityClock], error: LogError | None) -> Verdict | None:
    first = _first_dead(context, dead, error)
    launcher_died = any(c.role == Role.LAUNCHER for c in dead)
    if error is None and context.was_ready and all(c.exit_code == 0 for c in dead):
        return _ended(
            context, Evidence("proc", f"{_who(context, first)} {how_it_ended(first)}", first.rank, first.pid)
        )
    if launcher_died and error is None and _ended_well(context, dead):
        return Verdict(
            "waiting",
            f"the server has ended: the launcher {how_it_ended(next(c for c in dead if c.role == Role.LAUNCHER))}",
            confidence=0.9,
            rule="ended",
            evidence=(Evidence("proc", f"the launcher (pid {first.pid}) {how_it_ended(first)}", pid=first.pid),),
        )
    who = _who(context, first)
    stage = (
        "after it was ready"
        if context.was_ready
        else context.phases.during(_phase_of(context, first.rank, first.pid))
    )
    evidence = [Evidence("proc", f"{who} {how_it_ended(first)}", first.rank, first.pid)]
    if error is not None and error.kind not in _CONSEQUENCES:
        evidence.insert(0, _error_fact(error))
        headline = _error_headline(context, error, _phase_of(context, error.rank, first.pid))
    elif first.role == Role.LAUNCHER:
        headline = f"the launcher {how_it_ended(first)} {stage}"
    else:
        headline = f"{who} {how_it_ended(first)} {stage}"
        if error is not None:
            evidence.append(_error_fact(error))
        elif context.launcher is not None:
            headline += "; the launcher has not noticed yet"
    if first.oom_kills:
        evidence.append(Evidence("cgroup", f"the kernel's OOM killer struck {plural(first.oom_kills, 'time')} since"))
        if error is None:
            headline = f"{who} was killed by the kernel's OOM killer {stage}"
    elif _led(first):
        evidence.append(Evidence("proc", "somebody asked it to end: a time-out, Kubernetes, Ctrl-C or kill"))
    elif first.exit_signal == 9:
        evidence.append(_sigkill_fact(context, first))
    others = [c for c in dead if c is not first]
    if others:
        evidence.append(Evidence("proc", f"gone as well: {', '.join(_who(context, c) for c in others[:4])}"))
    launcher = next((c for c in others if c.role == Role.LAUNCHER and c.exit_signal == 9), None)
    if launcher is not None:
        evidence.append(_sigkill_fact(context, launcher))
    if launcher_died and context.ranks:
        left = ", ".join(f"{v.label} (pid {v.pid})" for v in context.ranks[:4])
        evidence.append(Evidence("proc", f"left behind, and may hold GPU memory: {left}"))
    rank = error.rank if error is not None and error.rank and error.kind not in _CONSEQUENCES else first.rank
    return Verdict(
        "crashed",
        headline,
        phase=context.phase,
        since_t=first.gone_t or context.t,
        confidence=0.98 if error is not None or first.exit_signal or first.exit_code is not None else 0.9,
        rule="process-gone",
        odd_ranks=(rank,) if rank else (),
        evidence=tuple(evidence[:5]),
        next=_log_steps(context, error),
    )


def _phase_of(context: Context, name: str, pid: int | None = None) -> str:
    """Of that rank, as it was last seen; the server's for a process that is no rank."""
    workers = [rank for rank in context.snapshot.ranks if rank.role is Role.WORKER]
    own = (rank.phase for rank in workers if rank.pid == pid or (name and rank.name == name))
    return next(own, context.phase)


def _first_dead(context: Context, dead: list[ActivityClock], error: LogError | None) -> ActivityClock:
    """The rank that the log names; but a rank that was killed goes before the one that complains of its absence."""
    if error is not None and error.kind in _NAMES_THE_DEAD and error.rank:
        # The launcher's own word of who died. Seen in one look with those that it then took with it.
        at_once = [c for c in dead if (c.gone_t or 0.0) - (dead[0].gone_t or 0.0) <= AT_ONCE_S]
        told = next((c for c in at_once if c.rank == error.rank and _violent(context, c)), None)
        if told is not None:
            return told
    complains = error is not None and error.kind in _CONSEQUENCES and _violent(context, dead[0])
    named = error.rank if error is not None and not complains else ""
    return next((c for c in dead if named and c.rank == named), dead[0])


def _ended(context: Context, fact: Evidence) -> Verdict:
    alive = bool(context.launcher or context.ranks)
    return Verdict(
        "unhealthy" if alive else "waiting",
        "its ranks have ended with status 0: the server was shut down",
        phase="serving",
        confidence=0.8,
        rule="ended",
        evidence=(fact,),
    )


def _from_log(context: Context, error: LogError) -> Verdict:
    alive = [f"{v.label} (pid {v.pid})" for v in context.ranks][:4]
    evidence = [_error_fact(error)]
    if alive:
        evidence.append(Evidence("proc", f"still alive: {', '.join(alive)}"))
    holder = port_holder(context)
    if error.kind == "port_in_use" and holder:
        evidence.append(Evidence("port", f"{holder}; a ready line after this is the stranger's"))
    return Verdict(
        "crashed",
        _error_headline(context, error, _phase_of(context, error.rank)),
        phase=context.phase,
        since_t=error.seen_t if error.seen_t is not None else context.t,
        confidence=0.9,
        rule="log-error",
        odd_ranks=(error.rank,) if error.rank else (),
        evidence=tuple(evidence),
        next=_log_steps(context, error),
    )


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
    return error.seen_t is not None and context.t - error.seen_t >= _SETTLED_S


def _violent(context: Context, clock: ActivityClock) -> bool:
    """It did not merely follow its parent: its end has a status of its own. Some launchers kill themselves last."""
    if clock.role == Role.LAUNCHER and clock.exit_signal == 9 and context.family.launcher_kills_itself:
        return False
    return bool(clock.exit_signal) or bool(clock.exit_code)


def _led(clock: ActivityClock) -> bool:
    """A launcher that was signalled takes its ranks along: they die of SIGKILL by PR_SET_PDEATHSIG."""
    return clock.role == Role.LAUNCHER and bool(clock.exit_signal) and clock.exit_signal != 9


def how_it_ended(clock: ActivityClock) -> str:
    """ "was killed by SIGKILL", "exited with status 1", "is gone (exit status unknown)"."""
    if clock.exit_signal:
        verb = "ended" if clock.exit_signal in (1, 2, 15) else "killed"
        return f"was {verb} by {_SIGNALS.get(clock.exit_signal, f'signal {clock.exit_signal}')}"
    if clock.exit_code is not None:
        return f"exited with status {clock.exit_code}"
    return "is gone (exit status unknown)"


def _who(context: Context, clock: ActivityClock) -> str:
    role = "an importing worker" if clock.role == Role.IMPORTING else f"the {context.label(clock.role)}"
    return f"{clock.rank or role} (pid {clock.pid})"


def _ended_well(context: Context, dead: list[ActivityClock]) -> bool:
    launcher = next(c for c in dead if c.role == Role.LAUNCHER)
    asked = launcher.exit_signal in (2, 15) or launcher.exit_code in (130, 143)  # Ctrl-C, SIGTERM
    return launcher.exit_code == 0 or (context.was_ready and asked)


def _sigkill_fact(context: Context, first: ActivityClock) -> Evidence:
    if first.role == Role.LAUNCHER and context.family.launcher_kills_itself:
        return Evidence(
            "proc", "a launcher ends itself with SIGKILL (137) after most failures: no sign of the OOM killer"
        )
    if context.snapshot.procs.oom_kills is None:
        return Evidence("cgroup", "whether the OOM killer did it cannot be read here")
    return Evidence("cgroup", "the OOM killer's count did not move: somebody else sent SIGKILL")


def _error_fact(error: LogError) -> Evidence:
    return Evidence("log", f"line {error.line}: {clean(error.text, 160)}", error.rank)


def _error_headline(context: Context, error: LogError, phase: str) -> str:
    """ "TP1: out of GPU memory (KV cache): 924.00 MiB asked, 230.00 MiB free"."""
    who = f"{error.rank}: " if error.rank else ""
    words = cause_words(error, catalogue.of_family(context.snapshot.log.family))
    stage = "after it was ready" if context.was_ready else context.phases.words(phase)
    amounts = figures(error)
    return f"{who}{words} ({stage})" + (f": {amounts}" if amounts else "")


def _log_steps(context: Context, error: LogError | None) -> tuple[NextStep, ...]:
    path = context.snapshot.log.path
    if not path or context.snapshot.log.kind not in ("file", "deleted", ""):
        return ()  # a command or a pipe: the log panel has its text
    if error is not None:
        start = max(1, error.line - 5)
        return (NextStep("Read the log around the first cause", f"sed -n '{start},{error.line + 25}p' {path}"),)
    return (NextStep("Read the end of the log", f"tail -n 60 {path}"),)
