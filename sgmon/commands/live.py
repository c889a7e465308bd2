"""A live engine as every command starts it: all probes, the cause book with the user's own entries."""

from __future__ import annotations

import sys

from sgmon.commands.cause_book import read_book
from sgmon.engine import Engine
from sgmon.record import Recorder
from sgmon.settings import Settings
from sgmon.source import LiveSource


def live_engine(
    settings: Settings,
    *,
    source: LiveSource | None = None,
    recorder: Recorder | None = None,
    auto_evidence: bool | None = None,
) -> Engine:
    """An engine over the live probes, not started yet. A mistake in the user's cause book is said once."""
    book, mistake = read_book()
    if mistake:
        print(f"sgmon: {mistake}", file=sys.stderr)
    return Engine(
        source or LiveSource(settings),
        recorder=recorder,
        auto_evidence=settings.auto_evidence if auto_evidence is None else auto_evidence,
        book=book,
    )
