"""The port probe without httpx: every test of it, by the standard library's client."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from tests.probes.test_port import *  # noqa: F403


@pytest.fixture(autouse=True)
def no_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "httpx" else find(name, *rest)
    )
    monkeypatch.setitem(sys.modules, "httpx", None)
