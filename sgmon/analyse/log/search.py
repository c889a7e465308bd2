"""Searching a big log away from the screen: a thread goes block by block and reports."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from sgmon.analyse.log.catalogue import of
from sgmon.analyse.log.shapes import KEPT, LONGEST, shape_of
from sgmon.model import LogLine
from sgmon.servers.family import LogRules

Wanted = Callable[[LogLine], bool]
Hint = Callable[[str], bool]
UNKNOWN, NONE, SOME = 0, 1, 2
#: blocks between two progress reports
STRIDE = 256
#: the last blocks still change; the view looks at them itself
LIVE_BLOCKS = 2


#: what a line of an exception, a traceback or a level holds, besides the literals of the catalogue
_TROUBLE = (
    *("Error", "Exception", "Interrupt", "Exit", "Timeout", "OOM", "ERROR", "CRITICAL", "hit an exception"),
    *('File "', "Traceback", "^^", "~~", "hread 0x", "Extension modules", "exception", "[E", "[F"),
)


_ALARMS = ("warn", "deprecated", "failed to", "not set", "not found", "not available", "[w")


@lru_cache(maxsize=16)
def kind_hint(kind: str, log: LogRules) -> Hint | None:
    """A test that passes every text in which a line of this kind can be, and few others."""
    if kind == "warning":
        notices = {key.lower() for rule in of(log).rules if rule.group == "error" for key in rule.keys}
        return _Literals({*_ALARMS, *notices}, lower=True)
    if kind not in ("error", "milestone"):
        return None
    literals = {key for rule in of(log).rules if rule.group == kind for key in rule.keys}
    return _Literals(literals | set(_TROUBLE) if kind == "error" else literals)


class _Literals:
    """Whether one of many literals may be in a text. Shapes (see ``shapes``) that have none are remembered."""

    def __init__(self, literals: set[str], lower: bool = False) -> None:
        shapes = {shape_of(literal) for literal in literals}
        self._literals = tuple(one for one in shapes if not any(other != one and other in one for other in shapes))
        self._lower = lower
        self._without: set[bytes] = set()

    def __call__(self, text: str) -> bool:
        shapes = set(shape_of(text.lower() if self._lower else text).split(b"\n")) - self._without
        blob = b"\n".join(shapes)
        if blob and any(literal in blob for literal in self._literals):
            return True
        if len(self._without) + len(shapes) > KEPT:
            self._without = set()
        self._without.update(shape for shape in shapes if len(shape) <= LONGEST)
        return False


class Blocks(Protocol):
    """What a search needs of the index."""

    generation: int

    @property
    def blocks(self) -> int: ...

    def peek(self, block: int, hint: Hint | None = None) -> Iterator[tuple[int, LogLine]]: ...


class Search:
    """One look for the next line that is wanted."""

    def __init__(self, text: Blocks, wanted: Wanted, hint: Hint | None) -> None:
        self._text = text
        self._wanted = wanted
        self._hint = hint
        self._stop = threading.Event()

    def start(self, offset: int, forward: bool, block: int, done: Callable[[int | None], None]) -> None:
        """Look from ``offset`` (not included), which lies in ``block``. ``done`` is called in the thread."""
        args = (offset, forward, block, done)
        threading.Thread(target=self._run, args=args, name="log-search", daemon=True).start()

    def cancel(self) -> None:
        self._stop.set()

    def _run(self, offset: int, forward: bool, block: int, done: Callable[[int | None], None]) -> None:
        generation = self._text.generation
        step = 1 if forward else -1
        while 0 <= block < self._text.blocks and not self._stop.is_set():
            if self._text.generation != generation:
                return
            entries = self._text.peek(block, self._hint)
            for at, line in entries if forward else reversed(list(entries)):
                if (at > offset if forward else at < offset) and self._wanted(line):
                    if not self._stop.is_set():
                        done(at)
                    return
            block += step
        if not self._stop.is_set():
            done(None)


class Count:
    """The places of all lines that are wanted, as far as the log went when it began."""

    def __init__(self, text: Blocks, wanted: Wanted, hint: Hint | None) -> None:
        self._text = text
        self._wanted = wanted
        self._hint = hint
        self._stop = threading.Event()

    def start(self, done: Callable[[Sequence[int]], None]) -> None:
        """``done`` is called in the thread with byte offsets, ascending; not at all when cancelled."""
        threading.Thread(target=self._run, args=(done,), name="log-count", daemon=True).start()

    def cancel(self) -> None:
        self._stop.set()

    def _run(self, done: Callable[[Sequence[int]], None]) -> None:
        generation = self._text.generation
        places = array("Q")
        for block in range(self._text.blocks):
            if self._stop.is_set() or self._text.generation != generation:
                return
            places.extend(at for at, line in self._text.peek(block, self._hint) if self._wanted(line))
        if not self._stop.is_set():
            done(places)


class Survey:
    """For every block, whether a line in it passes; newest blocks first. ``state`` is safe to read meanwhile."""

    def __init__(self, text: Blocks, wanted: Wanted, hint: Hint | None) -> None:
        self._text = text
        self._wanted = wanted
        self._hint = hint
        self._known = bytearray()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._generation = text.generation
        self.looked_at = 0

    def start(self, progress: Callable[[], None]) -> None:
        """``progress`` is called in the thread, every so often and at the end."""
        self._wake.set()
        threading.Thread(target=self._run, args=(progress,), name="log-survey", daemon=True).start()

    def cancel(self) -> None:
        self._stop.set()
        self._wake.set()

    def grow(self) -> None:
        """More text is there."""
        self._wake.set()

    def state(self, block: int) -> int:
        """UNKNOWN, NONE or SOME."""
        return self._known[block] if block < len(self._known) else UNKNOWN

    @property
    def done_share(self) -> float:
        """How much of the log was looked at, 0 to 1."""
        full = self._text.blocks - LIVE_BLOCKS
        return 1.0 if full <= self.looked_at else self.looked_at / full

    def _run(self, progress: Callable[[], None]) -> None:
        done_to = 0  # blocks below are known
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            if self._text.generation != self._generation:
                return
            blocks = self._text.blocks
            full = max(0, blocks - LIVE_BLOCKS)
            self._known.extend(bytes(blocks - len(self._known)))
            for count, block in enumerate(range(full - 1, done_to - 1, -1)):
                if self._stop.is_set() or self._text.generation != self._generation:
                    return
                if self._known[block] == UNKNOWN:
                    some = any(self._wanted(line) for _, line in self._text.peek(block, self._hint))
                    self._known[block] = SOME if some else NONE
                self.looked_at += 1
                if count % STRIDE == 0 or (count < STRIDE and count & (count - 1) == 0):
                    progress()
            if full > done_to:
                done_to = full
                progress()
