"""A fixture that keeps every word about the made-up servers of a test, beside what the test itself asks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.diagnosis.verdict_history import VerdictHistory
from tests.diagnosis.verdict_rows import Said, rows, words_of
from tests.golden import MEANT, Texts


@pytest.fixture(autouse=True)
def every_word(snapshot: SnapshotAssertion) -> Iterator[None]:
    """Compares what was said of them, second by second, with __snapshots__."""
    VerdictHistory.made.clear()
    yield
    made = [one for one in VerdictHistory.made if one.history]
    VerdictHistory.made.clear()
    if made:
        told = [row for number, one in enumerate(made, start=1) for row in (f"server {number}", *_said(one))]
        assert "\n".join([*told, ""]) == snapshot(extension_class=Texts), MEANT


def _said(one: VerdictHistory) -> Iterator[str]:
    changes = (next(group) for _, group in groupby(one.history, key=lambda change: words_of(change[1])))
    yield from rows([Said(t, verdict.phase, verdict) for t, verdict in changes], one.latest)
