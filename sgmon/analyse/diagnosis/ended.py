"""Ended: somebody asked the server to end, before or after it was ready, and it does: neither a crash nor a hang."""

from __future__ import annotations

from sgmon.analyse.deaths.death import Death
from sgmon.analyse.deaths.order import Order
from sgmon.analyse.deaths.words import how_it_ended, was_asked, who
from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.log import catalogue
from sgmon.model import Evidence, LogError, Role, Verdict
from sgmon.text import clean
from sgmon.units import lasting, plural

#: a shutdown that takes longer hangs: SGLang gives running requests some time, vLLM its workers
LONG_S = 60.0
#: by which Python says that it was ended by Ctrl-C
_CTRL_C = "keyboard_interrupt"


def shut_down(context: Context) -> Verdict | None:
    """The log has the server's own word that it was sent SIGTERM, or shows a Ctrl-C, and no failure before
    it that ends a server."""
    log = context.snapshot.log
    if log.sigterm_line is None:
        return None
    if log.error is not None and log.error.line < log.sigterm_line and not _was_survived(context, log.error):
        return None
    if log.stopped_by == "Ctrl-C":
        fact = Evidence("log", f"line {log.sigterm_line}: a traceback that ends with KeyboardInterrupt")
        return _ended(context, f"the server was stopped by Ctrl-C {context.stage}", fact)
    fact = Evidence("log", f"SIGTERM is in log line {log.sigterm_line}")
    if context.launcher is None:
        return _ended(context, "the server was shut down by SIGTERM and is gone", fact)
    seen_t = _seen_t(context)
    lives = "is about to end" if context.launcher.ending else "still lives"
    alive = Evidence("proc", f"the launcher (pid {context.launcher.pid}) {lives}")
    if seen_t is not None and context.t - seen_t >= LONG_S:
        return Verdict(
            "unhealthy",
            f"the server was sent SIGTERM {lasting(context.t - seen_t)} ago and has not ended",
            phase=_phase(context),
            since_t=seen_t,
            confidence=0.9,
            rule="shutdown-slow",
            evidence=(fact, alive),
        )
    return _ended(context, "the server is shutting down: it was sent SIGTERM", fact, alive, rule="shutting-down")


def _was_survived(context: Context, error: LogError) -> bool:
    """An error of a server that was ready, of a kind that such a server survives: a /health that was late."""
    ready = context.snapshot.log.ready_line
    kinds = catalogue.of_family(context.snapshot.log.family).survivable_kinds
    return ready is not None and error.line > ready and error.kind in kinds


def ended(context: Context, order: Order) -> Verdict | None:
    """Its processes are gone because somebody asked for it, or with a status of 0; None: it is a crash."""
    dead = (*((order.first,) if order.first is not None else ()), *order.candidates, *order.taken)
    launcher = next((death for death in dead if death.is_launcher), None)
    if order.cause is not None or order.lost is not None:
        return None
    asked = [death for death in dead if was_asked(death)]
    nobody_before = order.first is None or order.first is launcher
    if launcher is not None and was_asked(launcher) and nobody_before:
        fact = Evidence("proc", "somebody asked it to end: a time-out, Kubernetes, Ctrl-C or kill")
        return _ended(context, f"the launcher {how_it_ended(launcher)} {context.stage}", _how(context, order), fact)
    if asked and all(was_asked(death) or not death.violent for death in dead) and len(asked) > 1:
        return _ended(
            context, f"its processes were asked to end {context.stage}: Ctrl-C or kill", _how(context, order)
        )
    if context.snapshot.log.error is not None:
        return None
    if order.first is not None and order.first.violent:
        return None
    if launcher is not None and launcher.code == 0 and not order.candidates and not any(death.code for death in dead):
        return _ended(context, "the server has ended: the launcher exited with status 0", _how(context, order))
    workers = [death for death in dead if death.role is Role.WORKER]
    if not context.has_been_ready or not workers or any(death.code != 0 for death in workers):
        return None
    others = [
        death for death in dead if death.violent and not death.is_launcher and death.role is not Role.DETOKENIZER
    ]
    if others or (launcher is not None and launcher.signal not in (None, *context.family.ends.own_end)):
        return None
    headline = "its ranks have ended with status 0: the server was shut down"
    return _ended(context, headline, *_after_its_ranks(context, workers, launcher))


def _after_its_ranks(context: Context, workers: list[Death], launcher: Death | None) -> list[Evidence]:
    """How the ranks ended; then the launcher, whose signal is its own."""
    first, more = workers[0], len(workers) - 1
    others = f", and {plural(more, 'other rank')} with status 0" if more else ""
    facts = [Evidence("proc", f"{who(context, first)} {how_it_ended(first)}{others}", first.rank, first.pid)]
    if launcher is not None:
        own = ": it ends itself so after a shutdown" if launcher.signal is not None else ""
        facts.append(Evidence("proc", f"{who(context, launcher)} {how_it_ended(launcher)}{own}", pid=launcher.pid))
    return facts


def may_be_a_shutdown(context: Context, order: Order) -> bool:
    """There is no log, it was ready, and its launcher has ended as it does after a shutdown: whether its ranks end in
    good order or were killed is seen in a moment."""
    own = context.family.ends.own_end
    launcher = any(death.is_launcher and death.signal in own for death in (*order.candidates, *order.taken))
    return order.open and launcher and context.has_been_ready and not context.snapshot.log.lines


def interrupted(context: Context) -> Verdict | None:
    """Its log says that it was ended by Ctrl-C."""
    error = context.snapshot.log.error
    if error is None or error.kind != _CTRL_C:
        return None
    fact = Evidence("log", f"line {error.line}: {clean(error.text, 160)}")
    return _ended(context, f"the server was stopped by Ctrl-C {context.stage}", fact)


def _ended(context: Context, headline: str, *facts: Evidence, rule: str = "ended") -> Verdict:
    return Verdict("ended", headline, phase=_phase(context), confidence=0.9, rule=rule, evidence=facts)


def _how(context: Context, order: Order) -> Evidence:
    death = order.first or (*order.candidates, *order.taken)[0]
    return Evidence("proc", f"{who(context, death)} {how_it_ended(death)}", death.rank, death.pid)


def _phase(context: Context) -> str:
    return "serving" if context.has_been_ready else context.phase


def _seen_t(context: Context) -> float | None:
    """When this shutdown was first called one."""
    old = context.snapshot.verdict
    return old.since_t if old.rule in ("shutting-down", "shutdown-slow") else None
