"""Logs of tests/cases, and folding them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sgmon.analyse.log.fold import LogFold
from sgmon.model import LogReading, LogState

CASES = Path(__file__).parent.parent / "cases"
RECORDINGS = sorted((CASES / "real").rglob("*.log.gz"))


def case_text(name: str) -> str:
    return (CASES / f"{name}.log").read_bytes().decode("utf-8", "replace")


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text("utf-8"))
    return found


def case_names() -> list[str]:
    return sorted(path.stem for path in CASES.glob("*.json"))


def recording(name: str) -> str:
    return gzip.decompress((CASES / "real" / f"{name}.log.gz").read_bytes()).decode("utf-8", "replace")


def fold(text: str, cuts: list[int] | None = None, t: float = 1.0) -> LogState:
    made = LogFold()
    at = 0
    for cut in [*(cuts or []), len(text)]:
        made.feed(LogReading("server.log", text=text[at:cut]), t)
        at = cut
    return replace(made.state(), clock_zero=None)  # of the readings, not of the text


def how_it_failed(state: LogState) -> tuple[str, str, str, int, str]:
    """Outcome and phase; kind, line and rank of the first cause."""
    assert state.error is not None
    return state.outcome, state.phase, state.error.kind, state.error.line, state.error.rank
