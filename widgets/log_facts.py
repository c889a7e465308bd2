"""What the log panel shows of a snapshot and of the text behind it, as one comparable value."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model import LogState, Snapshot
from sgmon.units import rough
from widgets.log_rows import QUIET_S
from widgets.log_text import LogText
from widgets.phases import natural_key

#: seconds over which growth is measured
SPAN_S = 5.0


class LogView(Struct, frozen=True):
    """What decides the panel's look, apart from where the reader stands."""

    version: int = 0
    generation: int = 0
    path: str = ""
    kind: str = ""
    change: str = ""
    note: str = ""
    size: int = 0
    total: int = 0
    exact: bool = True
    writer_offset: int | None = None
    expected: tuple[str, ...] = ()
    first_t: float | None = None
    last_byte_age_s: int | None = None
    quiet_s: int = 0
    rate: float | None = None
    milestones: frozenset[int] | None = None
    left_out: str = ""  # of the ranks that the log names
    nodes: tuple[str, ...] = ()  # whose logs these are, where there are several


class LogFacts:
    """Makes the view; remembers sizes for the rate of growth, and the milestones' lines."""

    def __init__(self, text: LogText) -> None:
        self._text = text
        self._sizes: list[tuple[float, int]] = []
        self._known: tuple[object, frozenset[int]] = (None, frozenset())
        self._first: tuple[int, float | None] = (-1, None)  # generation of the text, time of its first dated line

    def view(self, snapshot: Snapshot) -> LogView:
        text, log = self._text, snapshot.log
        since = log.last_byte_t
        age_s = None if since is None else rough(snapshot.t - since)
        return LogView(
            version=text.version,
            generation=text.generation,
            path=text.path or log.path,
            kind=text.kind or log.kind,
            change=text.change,
            note=text.note or log.note,
            size=text.size,
            total=text.total,
            exact=text.indexed >= text.size,
            writer_offset=text.writer_offset,
            expected=expected_ranks(snapshot),
            first_t=self._first_of_nodes() if snapshot.nodes else log.first_t,
            last_byte_age_s=age_s if log.is_dated(since) else None,
            quiet_s=age_s if age_s is not None and age_s >= QUIET_S and not log.ready_line else 0,
            rate=self._rate(snapshot.t, text.size),
            milestones=None if snapshot.nodes else self._milestones(log),
            left_out=log.left_out_words,
            nodes=tuple(view.name for view in snapshot.nodes),
        )

    def _first_of_nodes(self) -> float | None:
        """Time of the first dated line of the joined text, which is in one clock, whatever the nodes' clocks show."""
        generation, first_t = self._first
        if generation != self._text.generation or first_t is None:
            lines = self._text.block(0) if self._text.size else ()
            first_t = next((line.t for _, line in lines if line.t is not None), None)
            self._first = self._text.generation, first_t
        return first_t

    def _milestones(self, log: LogState) -> frozenset[int] | None:
        """Line numbers of the milestones; None while the log state does not count the same lines as the index."""
        total = self._text.total
        if not log.milestones or abs(log.lines - total) > max(2000, total // 20):
            return None
        if self._known[0] is not log.milestones:
            self._known = (log.milestones, frozenset(m.line for m in log.milestones))
        return self._known[1]

    def _rate(self, t: float, size_bytes: int) -> float | None:
        """Growth over the last seconds of the watch, in steps of 100 B/s."""
        sizes = self._sizes
        if not sizes or sizes[-1] != (t, size_bytes):
            if sizes and size_bytes < sizes[-1][1]:
                sizes.clear()
            sizes.append((t, size_bytes))
        while len(sizes) > 2 and sizes[1][0] <= t - SPAN_S:
            sizes.pop(0)
        span = t - sizes[0][0]
        return round((size_bytes - sizes[0][1]) / span, -2) if span >= 1 else None


def expected_ranks(snapshot: Snapshot) -> tuple[str, ...]:
    """Ranks that should print: of the schedulers that live, else those that the log has shown."""
    ranks = {rank.name for rank in snapshot.ranks if rank.name}
    ranks |= {r.rank for r in snapshot.log.ranks if r.rank}
    return tuple(sorted(ranks, key=natural_key))
