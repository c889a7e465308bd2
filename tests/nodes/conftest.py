"""Links that are judged sooner than in a watch, so that tests need not wait."""

from __future__ import annotations

import pytest

from sgmon.remote import link, source


@pytest.fixture(autouse=True)
def quick_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PING_S", 0.5)
    monkeypatch.setattr(link, "STALE_S", 2.0)
    monkeypatch.setattr(source, "BACK_OFF_S", (0.3, 1.0))
