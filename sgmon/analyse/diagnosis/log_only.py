"""No server on this machine, but a log is followed (kubectl logs, a shared file): what the log alone says."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis.context import Context, context_of
from sgmon.analyse.diagnosis.crash import crashed
from sgmon.analyse.diagnosis.ended import shut_down
from sgmon.analyse.diagnosis.facts import log_fact
from sgmon.analyse.diagnosis.ready import WORKS, ready_words
from sgmon.model import Evidence, LogState, Missing, NextStep, Snapshot, Verdict
from sgmon.text import clean
from sgmon.units import lasting

MARK = "log only"
#: while the log grows, a pause of this length is no news
PAUSE_S = 5.0


def log_only(snapshot: Snapshot) -> Verdict | None:
    """The verdict by the log alone, marked as such; None when there is a server, or no log. Never "stalled": that
    a rank stands still is seen in its counters only."""
    if not snapshot.log_only:
        return None
    context = context_of(snapshot)
    found = _judge(context, snapshot.log)
    why = f"no server runs on this machine: only its log is read ({clean(snapshot.log.path, 120)})"
    gap = Missing("procs", why, "to see its processes, GPUs and port, run sgmon where it runs")
    return replace(found, headline=f"{found.headline} ({MARK})", missing=(*found.missing, gap))


def _judge(context: Context, log: LogState) -> Verdict:
    if not log.lines:
        return _nothing_yet(log)
    # without its launcher in sight only the text tells that a server goes on after an error
    ended = shut_down(context) or (crashed(context) if log.outcome not in ("ready", "unhealthy") else None)
    if ended is not None:
        return replace(ended, confidence=min(ended.confidence, 0.85))
    if log.outcome == "unhealthy":
        return _says(context, "unhealthy", "it was ready, and its health check failed since", "log-only-unhealthy")
    if log.ready_line is not None:
        line = Evidence("log", ready_words(log))
        asked = Evidence("port", "/health was not asked: the port is not on this machine")
        return Verdict(
            "ready",
            WORKS if log.ready_by_work else "the server says that it is ready",
            phase="serving",
            confidence=0.7,
            rule="log-only-ready",
            evidence=(line, asked),
        )
    if log.change == "ended":
        ended_so = f"{context.phase_words}: the log has ended here, and says no cause"
        return _says(context, "unknown", ended_so, "log-only-ended", Evidence("log", clean(log.note, 200)))
    return _under_way(context)


def _nothing_yet(log: LogState) -> Verdict:
    """The command has said nothing, or only how it failed."""
    said = clean(log.note, 200)
    return Verdict(
        "unknown" if said else "waiting",
        said or f"nothing has come yet from {clean(log.path, 120)}",
        confidence=0.9,
        rule="log-only-empty",
    )


def _under_way(context: Context) -> Verdict:
    """The same limits as for a server whose counters cannot be read."""
    silent_s = max(0.0, context.t - context.log_activity_t)
    limits = context.limits()
    if silent_s < PAUSE_S and not context.snapshot.log.activity_is_dated:
        unknown = f"{context.phase_words}: whether its log grows is seen in a moment"
        return _says(context, "unknown", unknown, "log-only-undated")
    if silent_s < PAUSE_S:
        return _says(context, "progressing", f"{context.phase_words}: its log grows", "log-only-moving")
    silent = f"{context.phase_words}: its log is silent for {lasting(silent_s)}"
    if silent_s < limits.suspect_s:
        return _says(context, "progressing", silent, "log-only-quiet")
    longer = f"{silent}, longer than usual"
    step = NextStep("Look at its processes", "sgmon status --seconds 40   (where the server runs)")
    found = _says(context, "slow" if silent_s < limits.stalled_s else "suspect", longer, "log-only-silent")
    return replace(found, next=(step,))


def _says(context: Context, state: str, headline: str, rule: str, *facts: Evidence) -> Verdict:
    return Verdict(
        state,
        headline,
        phase=context.phase,
        confidence=0.6,
        rule=rule,
        evidence=(log_fact(context), *facts),
    )
