"""The one failure of finding a server."""

from __future__ import annotations


class TargetError(Exception):
    """What was asked for cannot be watched: one sentence, and what to try."""

    def __init__(self, words: str, remedy: str = "") -> None:
        super().__init__(f"{words}; {remedy}" if remedy else words)
        self.words = words
        self.remedy = remedy
