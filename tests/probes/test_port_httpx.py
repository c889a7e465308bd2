"""The port probe by httpx, which a watch asks over TLS: every test of it, those without TLS too."""

from __future__ import annotations

import pytest

from sgmon.collect.probes import port
from sgmon.collect.probes.health_request import HealthClient
from tests.probes.test_port import *  # noqa: F403


@pytest.fixture(autouse=True)
def by_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "health_client", lambda secure, *, asks_once: HealthClient())


@pytest.fixture
def maybe_httpx() -> None:
    """It is there."""
