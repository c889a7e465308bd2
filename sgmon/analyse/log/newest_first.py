"""Exports that begin with the newest entry (Kibana, cloud consoles, tac): put in order before they are read."""

from __future__ import annotations

from itertools import pairwise

from msgspec.structs import replace

from sgmon.analyse.log.stamps import STAMP, stamp
from sgmon.model.log import LogState
from sgmon.patterns import regex

_TIME = regex(STAMP)
_OPENS = "Traceback (most recent call last)"
#: Lines of which the times are looked at, and how far a line is searched for one.
LOOKED, NEAR = 400, 200


def is_newest_first(text: str) -> bool:
    """Whether the times of the lines go back: at least twice, and hardly ever forward."""
    times = [t for line in text.split("\n")[:LOOKED] if (t := _time(line)) is not None]
    back = sum(b < a for a, b in pairwise(times))
    forward = sum(b > a for a, b in pairwise(times))
    return back >= 2 and back > 8 * forward


def oldest_first(text: str) -> tuple[str, list[int]]:
    """The text in the order of time, and for each of its lines the number that it has in ``text``, from 1.

    Entries of several lines stay as they are: they begin with a line that has a time.
    """
    lines = text.removesuffix("\n").split("\n")
    numbered = list(enumerate(lines, 1))
    if _entries_are_lines(lines):
        numbered.reverse()
    else:
        entries: list[list[tuple[int, str]]] = []
        for item in numbered:
            if not entries or _time(item[1]) is not None:
                entries.append([])
            entries[-1].append(item)
        numbered = [item for entry in reversed(entries) for item in entry]
    return "\n".join(line for _, line in numbered) + "\n", [number for number, _ in numbered]


def renumbered(state: LogState, numbers: list[int]) -> LogState:
    """``state`` with the numbers that its lines have in the file."""

    def real(line: int) -> int:
        return numbers[line - 1] if 0 < line <= len(numbers) else line

    def maybe(line: int | None) -> int | None:
        return None if line is None else real(line)

    last, error, gap = state.last_milestone, state.error, state.longest_gap
    return replace(
        state,
        milestones=tuple(replace(m, line=real(m.line)) for m in state.milestones),
        last_milestone=last and replace(last, line=real(last.line)),
        ranks=tuple(replace(rank, line=real(rank.line)) for rank in state.ranks),
        bars=tuple(replace(bar, line=real(bar.line)) for bar in state.bars),
        error=error and replace(error, line=real(error.line)),
        longest_gap=gap and replace(gap, after_line=real(gap.after_line)),
        engines=tuple(replace(engine, state=renumbered(engine.state, numbers)) for engine in state.engines),
        ready_line=maybe(state.ready_line),
        http_up_line=maybe(state.http_up_line),
        bind_error_line=maybe(state.bind_error_line),
        dummy_health_line=maybe(state.dummy_health_line),
        unresolved=state.unresolved and replace(state.unresolved, line=real(state.unresolved.line)),
        sigterm_line=maybe(state.sigterm_line),
        interrupted_line=maybe(state.interrupted_line),
        run_line=real(state.run_line),
    )


def _entries_are_lines(lines: list[str]) -> bool:
    """Whether tracebacks stand upside down too: their frames before the line that opens them."""
    opens = next((index for index, line in enumerate(lines) if _OPENS in line), None)
    return opens is None or (opens > 0 and 'File "' in "".join(lines[max(0, opens - 3) : opens]))


def _time(line: str) -> float | None:
    match = _TIME.search(line[:NEAR])
    return stamp(match[0]) if match else None
