"""Crashed by the log alone: it named a cause that nothing survives, and no process was seen to end."""

from __future__ import annotations

from sgmon.analyse.deaths.sayings import named_pid, names_a_process
from sgmon.analyse.deaths.words import by_signal
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.crash_evidence import error_fact, log_steps, still_there
from sgmon.analyse.diagnosis.crash_phase import phase_of
from sgmon.analyse.diagnosis.crash_words import error_headline
from sgmon.analyse.diagnosis.ready import port_holder
from sgmon.analyse.log import catalogue
from sgmon.model import Evidence, LogError, Verdict

#: seconds that an error line must stand without progress when no process died of it
_SETTLED_S = 5.0


def is_fatal(context: Context, error: LogError) -> bool:
    """Whether the server does not survive this error, by what the log says after it and by its kind."""
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
    if _serves_on(context, error):
        return False
    return error.seen_t is not None and context.t - error.seen_t >= _SETTLED_S


def _serves_on(context: Context, error: LogError) -> bool:
    """An error of a server that was ready and whose launcher lives: a request's, or a /health that was late. Errors
    that end a process are not among them: its end is seen."""
    log = context.snapshot.log
    if log.ready_line is None or error.line < log.ready_line or context.launcher is None:
        return False
    return error.kind not in catalogue.of_family(log.family).fatal_kinds


def from_log(context: Context, error: LogError) -> Verdict:
    """Crashed of this error."""
    evidence = [error_fact(error), *still_there(context)]
    holder = port_holder(context)
    if error.kind == "port_in_use" and holder:
        evidence.append(Evidence("port", f"{holder}; a ready line after this is the stranger's"))
    return Verdict(
        "crashed",
        _told_headline(context, error) or error_headline(context, error, phase_of(context, error.rank)),
        phase=context.phase,
        since_t=error.seen_t if error.seen_t is not None else context.t,
        confidence=0.9,
        rule="log-error",
        odd_ranks=(error.rank,) if error.rank else (),
        evidence=tuple(evidence),
        next=log_steps(context, error),
    )


def _told_headline(context: Context, error: LogError) -> str:
    """ "the detokenizer (pid 4711) was killed by SIGKILL" or "... has died": of a process that the line names before
    its end is seen; "" of none."""
    line = next((c for c in context.snapshot.log.complaints if c.line == error.line and names_a_process(c)), None)
    pid = None if line is None else named_pid(context.snapshot, line)
    clock = next((c for c in context.snapshot.clocks if pid is not None and c.pid == pid), None)
    if clock is None:
        return ""
    how = by_signal(line.signal) if line is not None and line.signal is not None else "has died"
    return f"{clock.rank or f'the {context.label(clock.role)}'} (pid {clock.pid}) {how} {context.stage}"
