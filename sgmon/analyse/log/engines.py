"""Several servers in one text (Ray, compose, dynamo): told apart by who wrote a line, each with its own reading."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from sgmon.model.log import LogPart, LogState

#: What a rank says once in a start: two writers that both said it for the same rank are two servers.
_ONCE = frozenset(
    {"dist_init_begin", "load_begin", "load_end", "memory_pool_end", "scheduler_ready", "http_up", "ready"}
)
#: Worst first.
_OUTCOMES = ("crashed", "unhealthy", "unfinished", "ready")


def told_apart(whole: LogState, parts: Mapping[str, LogState], counts: Mapping[str, int]) -> LogState:
    """``whole``, or where the writers are several servers, the reading of the worst of them with all in ``engines``.

    counts: lines of each writer. A number that every line has its own of (``grep -n``) names no writer.
    """
    writers = {name: part for name, part in parts.items() if counts.get(name, 0) > 1 and part.milestones}
    if len(writers) < 2 or not _clash(list(writers.values())):
        return whole
    engines = tuple(LogPart(name, part) for name, part in writers.items())
    worst = min(engines, key=lambda engine: (_OUTCOMES.index(engine.state.outcome), _reached(engine.state)))
    return replace(worst.state, engines=engines, longest_gap=whole.longest_gap)


def _clash(parts: list[LogState]) -> bool:
    seen: set[tuple[str, str]] = set()
    for part in parts:
        if part.args is not None and (part.args.nnodes or 1) > 1:
            continue  # the nodes of one server
        own = {(m.name, m.rank) for m in part.milestones if m.name in _ONCE}
        if own & seen:
            return True
        seen |= own
    return False


def _reached(state: LogState) -> int:
    """How far a start has come, in milestones of different names."""
    return len({milestone.name for milestone in state.milestones})
