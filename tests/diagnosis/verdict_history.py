"""The verdicts that a made-up server has had."""

from __future__ import annotations

from collections import deque
from itertools import groupby
from typing import ClassVar

from sgmon.model import Snapshot, Verdict


class VerdictHistory:
    """(second, verdict), one for each that differs from the one before. made: those of this test (``every_word``)."""

    made: ClassVar[deque[VerdictHistory]] = deque(maxlen=100)

    def __init__(self) -> None:
        self.history: list[tuple[float, Verdict]] = []
        self.latest = Snapshot()
        self.made.append(self)

    def note(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        if not self.history or snapshot.verdict != self.history[-1][1]:
            self.history.append((snapshot.t, snapshot.verdict))

    def states(self) -> list[str]:
        """In order, repeats left out."""
        return [state for state, _ in groupby(verdict.state for _, verdict in self.history)]

    def since(self, state: str, t: float) -> float | None:
        """Seconds from ``t`` to the first verdict of that state."""
        return next((at - t for at, verdict in self.history if verdict.state == state and at >= t), None)
