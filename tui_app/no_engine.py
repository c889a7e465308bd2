"""Placeholder until the engine exists: its modules take longer to import than the first frame may wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sgmon.model import Snapshot
    from widgets.log_text import LogText


OPENING = "looking for servers on this machine"


class NoEngine:
    """Knows nothing yet, says so, and does nothing: there is no server to do it to."""

    replay = None

    @cached_property
    def snapshot(self) -> Snapshot:
        """For pages that are opened this early; the first frame does without the model, which takes 40 ms."""
        from sgmon.model import Snapshot, Verdict

        return Snapshot(verdict=Verdict("waiting", OPENING))

    @property
    def log_text(self) -> LogText:
        raise LookupError("there is no log before there is an engine")

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None: ...

    def request_stacks(
        self, pids: Sequence[int] | None = None, samples: int = 1, native: bool = False, why: str = ""
    ) -> int | None: ...

    def choose(self, pid: int) -> None: ...

    def save_flight(self) -> bool:
        return False

    def recording(self, note: str) -> bytes | None:
        return None

    def start(self) -> None: ...

    def stop(self) -> None: ...
