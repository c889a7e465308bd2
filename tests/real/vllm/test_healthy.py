"""Real vLLM starts without a fault: no false word, and ready in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from sgmon.model import Role
from tests.real import measured
from tests.real.server import free_port
from tests.real.vllm.server import START_S, vllm_server
from tests.real.watching import ANSWERS, watching

#: words that a healthy start must never be given
FALSE = ANSWERS | {"unknown", "will-fail", "ended"}


@pytest.mark.parametrize(
    ("flags", "ranks"),
    [
        ((), {""}),
        (("-tp", "2"), {"TP0", "TP1"}),
        (("-dp", "2"), {"DP0", "DP1"}),
        (("-pp", "2"), {"PP0", "PP1"}),
    ],
    ids=["tp1", "tp2", "dp2", "pp2"],
)
def test_a_healthy_start(tmp_path: Path, flags: tuple[str, ...], ranks: set[str]) -> None:
    port = free_port()
    with (
        watching(tmp_path / "watch.jsonl.gz", port=port) as watcher,
        vllm_server(tmp_path, "tiny", *flags, port=port) as server,
    ):
        ready = watcher.wait_for("ready", "crashed", timeout_s=START_S + 240)
        measured.healthy(f"vLLM healthy, {' '.join(flags) or 'tp 1'}", server.began_at, ready,
                         watcher.states(server.began_at))  # fmt: skip
        assert ready.state == "ready", server.text()[-2000:]
        assert not FALSE & set(watcher.states(server.began_at)), watcher.history()
        assert "Application startup complete" in server.text()
        assert {rank.name for rank in watcher.snapshot.ranks if rank.role == Role.WORKER} == ranks
        assert watcher.snapshot.server is not None and watcher.snapshot.server.version.startswith("0.32.0")
