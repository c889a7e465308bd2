"""What a crash is told by: the ends of processes, the log's line, who lives on, and where to read more."""

from __future__ import annotations

from sgmon.analyse.deaths.order import Order
from sgmon.analyse.deaths.words import how_it_ended, names, sigkill_fact, who
from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Evidence, LogError, NextStep, Role
from sgmon.text import clean, quoted

_SIGKILL = 9


def death_facts(context: Context, order: Order, *, unseen: bool) -> list[Evidence]:
    """What is known of these ends. unseen: ranks were gone before sgmon looked, so that nobody is the first."""
    killed = [] if unseen else _killed(context, order)
    return [*_causes(context, order), *killed, *_others(context, order)]


def _causes(context: Context, order: Order) -> list[Evidence]:
    """The end of the first, and the log's line: its own failure before it, another's complaint after it."""
    error = context.snapshot.log.error
    first = order.only
    found = []
    if first is not None:
        found.append(Evidence("proc", f"{who(context, first)} {how_it_ended(first)}", first.rank, first.pid))
    if error is not None:
        found.insert(0 if order.cause is not None else len(found), error_fact(error))
    return found


def _killed(context: Context, order: Order) -> list[Evidence]:
    """Who sent SIGKILL to the first. The server's own launcher is no stranger."""
    first = order.first
    if first is None or first.signal != _SIGKILL or order.cause is not None:
        return []
    return [sigkill_fact(context, first)]


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


def still_there(context: Context) -> list[Evidence]:
    """Who lives, and who is about to end."""
    lives = [rank for rank in context.ranks if not rank.process.ending]
    ends = [rank for rank in context.ranks if rank.process.ending]
    return [
        Evidence("proc", f"{words}: {', '.join(f'{rank.label} (pid {rank.pid})' for rank in some[:4])}")
        for words, some in (("still alive", lives), ("about to end", ends))
        if some
    ]


def error_fact(error: LogError) -> Evidence:
    """The log's line."""
    return Evidence("log", f"line {error.line}: {clean(error.text, 160)}", error.rank)


def log_steps(context: Context, error: LogError | None) -> tuple[NextStep, ...]:
    """Where to read on in the log; nothing where it is no file."""
    path = context.snapshot.log.path
    if not path or context.snapshot.log.kind not in ("file", "deleted", ""):
        return ()  # a command or a pipe: the log panel has its text
    if error is not None:
        start = max(1, error.line - 5)
        command = f"sed -n '{start},{error.line + 25}p' {quoted(path)}"
        return (NextStep("Read the log around the first cause", command, key="o", line=error.line),)
    return (NextStep("Read the end of the log", f"tail -n 60 {quoted(path)}"),)
