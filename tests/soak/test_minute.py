"""As many hours of events as a minute plays, through the engine and the screen: what is held at the end of each round of
servers is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import soak

#: short ones, so that there are several rounds: out of memory, and killed while it imports
NAMES = ("cpu-tp2-live-oom-all", "vllm-live-tp2-kill-import")
LIMIT_S = 60.0
#: of each round after the first: caches of lines and of Textual's regions go on filling for some hours
BLOCKS = 12_000


@pytest.mark.soak
async def test_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = await soak.soak(24.0, LIMIT_S, NAMES)
    _, first, *_, last = result.samples
    rounds = len(result.samples) - 2
    assert rounds >= 1
    shown = "\n".join(soak.table(result))
    assert (last.fds, last.threads, last.screens) == (first.fds, first.threads, first.screens), shown
    assert last.widgets <= first.widgets, shown
    assert last.blocks - first.blocks < BLOCKS * rounds, shown
