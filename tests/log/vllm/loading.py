"""Logs of vLLM in tests/cases/vllm: excerpts of public reports, and whole logs of real starts."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

from msgspec.structs import replace

from sgmon.analyse.log.fold import LogFold
from sgmon.model import LogReading, LogState
from tests.log.loading import CASES, how_it_failed

FOLDER = CASES / "vllm"
#: 2026-11-30, the day after the real starts
EPOCH = 1_796_000_000.0


def case_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def case_text(name: str) -> str:
    return (FOLDER / f"{name}.log").read_bytes().decode("utf-8", "replace")


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["expected"]
    return found


def recordings() -> list[str]:
    return sorted(path.name.removesuffix(".log.gz") for path in (FOLDER / "real").glob("*.log.gz"))


def recording(name: str) -> str:
    return gzip.decompress((FOLDER / "real" / f"{name}.log.gz").read_bytes()).decode("utf-8", "replace")


def fold(text: str, cuts: list[int] | None = None, epoch: float | None = EPOCH) -> LogState:
    made = LogFold(epoch=epoch)
    at = 0
    for cut in [*(cuts or []), len(text)]:
        made.feed(LogReading("server.log", text=text[at:cut]), 1.0)
        at = cut
    return replace(made.state(), clock_zero=None)


def crash_of(text: str) -> tuple[str, str, str, int, str]:
    """How a text of vLLM failed."""
    state = fold(text)
    assert state.family == "vllm"
    return how_it_failed(state)


def as_shown(rank: str) -> str:
    """The name that a case gives a rank, as sgmon shows it: no EP token, "TP0" for the nameless first of several."""
    names = {"main": "TP0", "EngineCore": ""}
    return names.get(rank, re.sub(r" EP\d+$", "", re.sub(r"^rank(\d+)$", r"TP\1", rank)))
