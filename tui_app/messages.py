"""Messages from the engine's thread to the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from sgmon.model import Snapshot


class EngineFailed(Message):
    """The engine could not be made."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class SnapshotArrived(Message):
    """The newest snapshot. Queued ones are replaced: only the latest matters."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, SnapshotArrived)


class TerminalGone(Message):
    """Posted by the driver: the terminal was closed and nobody said so by a signal (nohup)."""
