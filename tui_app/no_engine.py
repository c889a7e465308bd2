"""What stands for the engine until it is made, which needs its modules: the first frame does not wait for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sgmon.model import Snapshot, Verdict

if TYPE_CHECKING:
    from widgets.log_text import LogText


class NoEngine:
    """Knows nothing yet, says so, and does nothing: there is no server to do it to."""

    replay = None

    def __init__(self) -> None:
        self.snapshot = Snapshot(verdict=Verdict("waiting", "looking for SGLang servers on this machine"))

    @property
    def log_text(self) -> LogText:
        raise LookupError("there is no log before there is an engine")

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None: ...

    def request_stacks(
        self, pids: Sequence[int] | None = None, samples: int = 1, native: bool = False, why: str = ""
    ) -> None: ...

    def choose(self, pid: int) -> None: ...

    def save_flight(self) -> bool:
        return False

    def recording(self, note: str) -> bytes | None:
        return None

    def start(self) -> None: ...

    def stop(self) -> None: ...
