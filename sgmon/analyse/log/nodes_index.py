"""The logs of several nodes as one text, in the order of time. Lines keep the order of their node.

A line's time is its stamp, in the clock of the watch; a line without one is as old as the line before it. Lines are
held for a moment, so that the nodes' readings come together. Where older text comes later (a node that was reached
late), everything is put in order anew.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.generation import Entry
from sgmon.analyse.log.index import Hint, LogIndex
from sgmon.analyse.log.line_times import stamp_epoch
from sgmon.analyse.log.textfile import Spool
from sgmon.model import LogLine, LogReading

#: seconds for which lines wait for those of other nodes
HOLD_S = 1.0
#: a line that is older than the newest shown one by no more than this is not worth a new order
LATE_S = 2.0
#: seconds of the watch between two new orders
APART_S = 5.0


class _Source(Struct):
    """One node's log as far as it has come."""

    number: int
    open_text: str = ""  # its last line, without an end yet
    t: float | None = None  # of its newest line; None: none had a stamp yet
    path: str = ""
    lines: int = 0


class _Order(Struct):
    """A text in order: where each line begins, of which node, and which number it has there."""

    starts: array[int] = field(default_factory=lambda: array("Q"))
    nodes: array[int] = field(default_factory=lambda: array("H"))
    numbers: array[int] = field(default_factory=lambda: array("L"))


class NodesLogIndex(LogIndex):
    """A ``LogIndex`` over the text of all nodes; its lines have a node."""

    def __init__(self, *, epoch: float | None = None) -> None:
        super().__init__(live=False, epoch=epoch)
        self._sources: dict[str, _Source] = {}
        self._names: list[str] = []
        self._zeros: list[float] = []
        self._raw = Spool()  # whole lines as they came
        self._places = array("Q")  # of each line in it
        self._times = array("d")
        self._owners = array("H")
        self._numbers = array("L")
        self._waiting: list[int] = []  # lines that are not in the text yet
        self._newest_t = float("-inf")  # of those that are
        self._late = False
        self._ordered_t = float("-inf")
        self._order = _Order()

    # what the engine calls

    def follow_node(self, reading: LogReading, node: str, t: float, zero: float) -> None:
        """Take over text of one node. zero: what the clock of its lines, read as local time, showed at second 0."""
        source = self._sources.get(node)
        if source is None:
            source = self._sources[node] = _Source(len(self._names))
            self._names.append(node)
            self._zeros.append(zero)
        self._zeros[source.number] = zero
        source.path = reading.path
        self.kind, self.change, self.note = reading.kind, reading.change, reading.note
        self.path = reading.path if len(self._names) == 1 else f"{len(self._names)} logs"
        if reading.text:
            if source.lines and reading.age_s is None:  # written just now
                source.t = t - HOLD_S if source.t is None else max(source.t, t - HOLD_S)
            self._add(source, reading.text, zero, t - (reading.age_s or 0.0))
        self.version += 1

    def settle(self, t: float) -> None:
        """Show what has waited long enough. Called at the ticks of the watch."""
        if self._late and t - self._ordered_t >= APART_S:
            self._order_anew(t)
        elif self._waiting:
            self._show(t)

    def start_anew(self) -> None:
        """A replay goes back to its beginning."""
        epoch = self._epoch
        version, generation = self.version, self.generation
        counter, wake = self._counter, self._wake
        NodesLogIndex.__init__(self, epoch=epoch)
        self._counter, self._wake = counter, wake
        self.version, self.generation = version + 1, generation + 1

    # reading

    def offset_of(self, number: int, node: str = "") -> int | None:
        """Where line ``number`` begins: of the whole, or of one node's own log."""
        source = self._sources.get(node) if node else None
        if source is None:
            return super().offset_of(number)
        order = self._order
        found = (i for i, n in enumerate(order.numbers) if n == number and order.nodes[i] == source.number)
        at = next(found, None)
        return None if at is None else order.starts[at]

    def peek(self, block: int, hint: Hint | None = None) -> Iterator[Entry]:
        return (self._with_node(entry) for entry in super().peek(block, hint))

    def block(self, block: int) -> list[Entry]:
        return [self._with_node(entry) for entry in super().block(block)]

    def _with_node(self, entry: Entry) -> Entry:
        """Its node, and its time in the clock of the watch: two machines' clocks are not compared."""
        offset, line = entry
        order = self._order
        at = bisect_right(order.starts, offset) - 1
        if at < 0:
            return entry
        number = order.nodes[at]
        t = None if line.t is None else line.t - self._zeros[number] + (self._epoch or 0.0)
        return offset, _tagged(line, self._names[number], t)

    # the order

    def _add(self, source: _Source, text: str, zero: float, read_t: float) -> None:
        lines = (source.open_text + text).split("\n")
        source.open_text = lines.pop()
        near = (self._epoch or 0.0) + read_t
        if source.t is None and lines:  # what has no stamp is as old as the first line that has one
            first = next((at for line in lines if (at := stamp_epoch(line, near)) is not None), None)
            source.t = read_t if first is None else min(read_t, first - zero)
        for line in lines:
            at = stamp_epoch(line, near)
            if at is not None:
                written_t = min(read_t, at - zero)  # no line is read before it is written, whatever its clock says
                source.t = written_t if source.t is None else max(source.t, written_t)
            source.lines += 1
            self._waiting.append(len(self._times))
            self._places.append(self._raw.size)
            self._times.append(read_t if source.t is None else source.t)
            self._owners.append(source.number)
            self._numbers.append(source.lines)
            self._raw.append(line + "\n")

    def _show(self, t: float) -> None:
        """Append the lines that have waited long enough, in their order."""
        if self._generation is None:
            self._order = _Order()
            self._begin(Spool())
        ready = sorted((i for i in self._waiting if self._times[i] <= t - HOLD_S), key=self._times.__getitem__)
        if not ready:
            return
        self._waiting = [i for i in self._waiting if self._times[i] > t - HOLD_S]
        self._late = self._late or self._times[ready[0]] < self._newest_t - LATE_S
        self._append(ready)

    def _order_anew(self, t: float) -> None:
        self._late, self._ordered_t, self._newest_t, self._waiting = False, t, float("-inf"), []
        self._order = _Order()
        self._begin(Spool())
        self._append(sorted(range(len(self._times)), key=self._times.__getitem__))

    def _append(self, lines: list[int]) -> None:
        generation, order = self._generation, self._order
        assert generation is not None
        spool = generation.file
        assert isinstance(spool, Spool)
        texts = []
        at = spool.size
        for line in lines:
            end = self._places[line + 1] if line + 1 < len(self._places) else self._raw.size
            data = self._raw.read(self._places[line], end - self._places[line])
            order.starts.append(at)
            order.nodes.append(self._owners[line])
            order.numbers.append(self._numbers[line])
            at += len(data)
            texts.append(data)
        spool.append_bytes(b"".join(texts))
        generation.size = spool.size
        self._newest_t = max(self._newest_t, self._times[lines[-1]])
        self.version += 1
        self._wake.set()


def _tagged(line: LogLine, node: str, t: float | None) -> LogLine:
    return line if line.node == node else replace(line, node=node, t=t)
