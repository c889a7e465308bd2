from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def strict_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A panel's own error fails the test instead of showing in the panel."""
    monkeypatch.setenv("SGMON_STRICT_PANELS", "1")
