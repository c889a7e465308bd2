"""Links that are judged sooner than in a watch, so that tests need not wait; what is heavy is opted in."""

from __future__ import annotations

import pytest

from sgmon.remote import link, source


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with the marker ``nodes`` run where it is asked for: ``pytest -m nodes tests/nodes``."""
    if "nodes" in config.getoption("markexpr"):
        return
    for item in items:
        if item.get_closest_marker("nodes"):
            item.add_marker(pytest.mark.skip(reason="heavy: run it with -m nodes"))


@pytest.fixture(autouse=True)
def quick_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PING_S", 0.5)
    monkeypatch.setattr(link, "STALE_S", 2.0)
    monkeypatch.setattr(source, "BACK_OFF_S", (0.3, 1.0))
