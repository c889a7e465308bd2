"""A real server whose model lies on a file system that stops to answer: while it starts, and while weights are read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fuse import fuse_mount
from tests.real import measured
from tests.real.server import HOME, drop_page_cache, real_server
from tests.real.watching import ALARMS, watching


@pytest.mark.parametrize(("when", "file"), [("import", ""), ("load", ".safetensors")])
def test_the_mount_of_the_model_hangs_and_comes_back(tmp_path: Path, when: str, file: str) -> None:
    model = HOME / "models" / "mid"
    drop_page_cache(model)
    with (
        fuse_mount(model, tmp_path / "model", "--read-rate=40M") as mount,
        real_server(tmp_path, str(mount.point), "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        if when == "import":
            server.wait_for_workers(2)
        else:
            server.wait_for_line("TP1] Load weight begin")
            time.sleep(1.0)
        assert not ALARMS & set(watcher.states()), watcher.history()
        hung_at = mount.hang()
        watcher.wait_for("suspect", "stalled", after=hung_at, timeout_s=90)
        verdict = watcher.wait_for("stalled", after=hung_at, timeout_s=120)
        measured.fault(f"FUSE mount hangs in the {when}", watcher, hung_at, verdict)
        assert verdict.verdict.rule == "storage", watcher.history()
        assert str(mount.point) in verdict.verdict.headline and file in verdict.verdict.headline
        resumed_at = mount.resume()
        watcher.wait_for("progressing", "slow", "ready", after=resumed_at, timeout_s=60)
        ready = watcher.wait_for("ready", "crashed", after=resumed_at)
        assert ready.state == "ready", watcher.history()
        assert not ALARMS & set(watcher.states(resumed_at + 5.0)), watcher.history()
