"""One node of several: its store, its clock, and when it last said something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sgmon.analyse.store import JUDGED, Store
from sgmon.model import Event, NodeReading, NodeView, Snapshot

if TYPE_CHECKING:
    from sgmon.analyse.stacks.causes import Cause

#: seconds without a word after which nothing is known of a node any more, whatever its link says
SILENT_S = 10.0
#: a clock that is off by less than this is not set anew: it was measured again
MOVED_S = 0.5
#: kinds that may change a verdict and do not draw it: others wait for the next reading of the processes
_NEWS = frozenset({"log", "baseline"})
#: states of a link over which nothing comes
_DUMB = frozenset({"connecting", "stale", "lost", "ended", "failed"})


class Node:
    """Folds the events of one node. Its epoch is the wall clock of that machine: the log, the start of its processes
    and the times of its files are told by that clock."""

    def __init__(self, name: str, epoch: float, store: Store | None = None, causes: Sequence[Cause] = ()) -> None:
        self.name = name
        self.reading: NodeReading | None = None
        self.store = store if store is not None else Store(epoch, user_causes=causes)
        self._epoch = epoch
        self._causes = causes
        self._begun = store is not None
        self._judged = True
        self._word_t: float | None = None
        self._view: NodeView | None = None

    @property
    def snapshot(self) -> Snapshot:
        return self.store.snapshot

    @property
    def link_state(self) -> str:
        """As its link last said; "" before that."""
        return self.reading.state if self.reading is not None else ""

    @property
    def last_t(self) -> float | None:
        """When it last said something, in watch seconds; None: never."""
        said = self.reading.since_t if self.reading is not None else None
        return max((t for t in (self._word_t, said) if t is not None), default=None)

    def heard(self, t: float) -> bool:
        """Whether its word is fresh, and its link does not say the opposite."""
        last_t = self.last_t
        if self.reading is not None and self.reading.state in _DUMB:
            return False
        return last_t is not None and t - last_t <= SILENT_S

    def step(self, event: Event) -> None:
        """Fold one event of this node in."""
        if isinstance(event.reading, NodeReading):
            self.reading = event.reading
            self._set_clock(event.reading.offset_s)
            return
        self._begun = True
        self._word_t = event.t if self._word_t is None else max(self._word_t, event.t)
        self.store.step(event)
        self._judged = event.kind in JUDGED or (self._judged and event.kind not in _NEWS)

    def catch_up(self, t: float) -> None:
        """Draw its verdict where the last events did not; never for a time at which nothing was heard of it."""
        last_t = self.last_t
        if not self._begun or last_t is None or not self.heard(t):
            return
        now = min(t, last_t)
        if not self._judged or now - self.snapshot.t >= 1.0:
            self._judged = True
            self.store.step(Event(max(now, self.snapshot.t), "tick"))

    def view(self, t: float) -> NodeView:
        """The same object as before while nothing has changed."""
        heard, old = self.heard(t), self._view
        same = old is not None and old.snapshot is self.snapshot and old.reading is self.reading
        if old is None or not same or old.heard != heard:
            self._view = old = NodeView(self.name, self.snapshot, self.reading, heard)
        return old

    def _set_clock(self, offset_s: float | None) -> None:
        """``offset_s``: the far clock minus ours."""
        epoch = self._epoch + (offset_s or 0.0)
        if not self._begun:
            self.store = Store(epoch, user_causes=self._causes)
        elif offset_s is not None and abs(epoch - self.snapshot.epoch) >= MOVED_S:
            self.store.set_epoch(epoch)
