"""A thread that waits for a file system which does not answer, while the main thread sleeps: read from a real mount."""

from __future__ import annotations

import sys

import pytest

from tests.fuse import fuse_mount
from tests.situations.tree import running

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
    pytest.mark.timeout(90),
]
SHARD = "model-00001-of-00001.safetensors"


@pytest.mark.parametrize("how", ["reads_mount", "maps_mount", "looks_at_mount", "looks_at_mount_itself"])
def test_a_thread_waits_for_a_hung_mount(tmp_path, how):
    """The main thread sleeps on a futex (but for the last); the file, its mount and for how long are known."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / SHARD).write_bytes(bytes(64 << 20))
    with (
        fuse_mount(tmp_path / "disk", tmp_path / "model") as mount,
        running(tmp_path, "--tp", "2", f"1={how}", processes=4) as tree,
    ):
        tree.needs_calls()
        assert tree.rank("TP0").thread_waits == ()
        mount.hang()
        seen = tree.until("TP1", lambda p: p.thread_waits and p.thread_waits[0].asleep_s >= 1)
        wait = seen.thread_waits[0]
        assert (wait.tid == seen.pid) is (how == "looks_at_mount_itself")
        assert (wait.mount, wait.fstype) == (str(mount.point), "fuse") or wait.call.number == -1
        assert how == "maps_mount" or wait.target == str(mount.point / SHARD)
        assert how != "maps_mount" or (wait.wchan, wait.state) == ("folio_wait_bit_common", "D")
        assert tree.rank("TP0").thread_waits == ()
        mount.resume()
        assert tree.until("TP1", lambda p: not p.thread_waits).thread_waits == ()
