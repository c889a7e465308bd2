"""What every screen needs of the application: the newest snapshot, the engine, the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tui_app.no_engine import NoEngine

if TYPE_CHECKING:
    from textual.app import App

    from sgmon.model import Snapshot
    from sgmon.settings import Settings
    from widgets.log_text import LogText


class EngineLike(Protocol):
    """What the screen needs of ``sgmon.watch.engine.Engine``."""

    snapshot: Snapshot
    log_text: LogText

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None: ...

    def request_stacks(
        self, pids: Sequence[int] | None = None, samples: int = 1, native: bool = False, why: str = ""
    ) -> int | None: ...

    def choose(self, pid: int) -> None: ...

    def save_flight(self) -> bool: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class NoServerError(Exception):
    """What was asked for cannot be watched: one sentence. Raised while the engine is made; it ends the screen."""


class Session:
    """One watch as the screens see it. received: the newest snapshot that was shown; None before the first."""

    def __init__(self, engine: EngineLike | None, settings: Settings) -> None:
        self.engine: EngineLike = engine or NoEngine()
        self.settings = settings
        self.received: Snapshot | None = None if engine is None else engine.snapshot

    @property
    def latest(self) -> Snapshot:
        """The newest snapshot that was shown; before the engine's first one that of no engine."""
        return self.received or self.engine.snapshot


def session_of(app: App[object]) -> Session:
    """The session of the application that a screen belongs to."""
    session = getattr(app, "session", None)
    if not isinstance(session, Session):
        raise TypeError(f"{type(app).__name__} has no session")
    return session
