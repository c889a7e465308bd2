"""A live engine: all probes, the cause book with the user's own entries. Every command starts it here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from sgmon.collect.source import LiveSource, Source
from sgmon.commands.cause_book import read_user_causes
from sgmon.settings import Settings
from sgmon.watch.engine import PUBLISH_S, Engine

if TYPE_CHECKING:
    from sgmon.recording.writer import Recorder
    from sgmon.watch.persistence import Persistence


def live_engine(
    settings: Settings,
    *,
    source: Source | None = None,
    recorder: Recorder | None = None,
    auto_evidence: bool | None = None,
    remember: bool = True,
    flight_only: bool = False,
    say: Callable[[str], None] | None = None,
) -> Engine:
    """An engine over the live probes, not started yet. A mistake in the user's cause book is said once.

    remember False: a single look, which keeps no flight and adds nothing to the history; flight_only: keeps the one.
    """
    causes, mistake = read_user_causes()
    if mistake:
        (say or _say)(mistake)
    source = source or source_of(settings)
    return Engine(
        source,
        recorder=recorder,
        persistence=_persistence(source.epoch, flight_only) if remember else None,
        auto_evidence=settings.auto_evidence if auto_evidence is None else auto_evidence,
        publish_s=PUBLISH_S * max(1.0, settings.interval_s) if remember else 0.0,
        user_causes=causes,
    )


def source_of(settings: Settings) -> Source:
    """The probes of this machine, or the machines that are named."""
    if not settings.hosts:
        return LiveSource(settings)
    from sgmon.collect.probes.base import Clock
    from sgmon.remote.hosts import here, is_here, reach
    from sgmon.remote.merged import MergedSource
    from sgmon.remote.source import RemoteSource

    clock = Clock()
    reached = [
        here() if is_here(name, settings.via) else reach(name, settings.via, settings.remote_python)
        for name in settings.hosts
    ]
    return MergedSource([RemoteSource(one, settings, clock) for one in reached], clock)


def _say(words: str) -> None:
    print(f"sgmon: {words}", file=sys.stderr)


def _persistence(epoch: float, flight_only: bool) -> Persistence:
    from sgmon.history.database import (
        StartDatabase,
    )  # SQLite and the rest of it: 20 ms that a single look does not need
    from sgmon.watch.persistence import Persistence

    return Persistence(epoch, None if flight_only else StartDatabase())
