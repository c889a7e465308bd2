from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with the marker ``soak`` run where it is asked for: ``pytest -m soak tests/soak``."""
    if "soak" in config.getoption("markexpr"):
        return
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.skip(reason="takes a minute: run it with -m soak"))
