"""A folder on a FUSE mount whose file system can be stopped: storage that hangs and comes back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class FuseMount:
    """``point`` shows ``source`` through the daemon ``child``."""

    def __init__(self, child: subprocess.Popen[bytes], point: Path) -> None:
        self.child = child
        self.point = point

    def hang(self) -> float:
        """Stop the file system's daemon; when that was (wall clock)."""
        os.kill(self.child.pid, signal.SIGSTOP)
        return time.time()

    def resume(self) -> float:
        os.kill(self.child.pid, signal.SIGCONT)
        return time.time()


@contextmanager
def fuse_mount(source: Path, point: Path, *options: str) -> Iterator[FuseMount]:
    """Skips the test, with the reason, where nothing can be mounted."""
    program = shutil.which("bindfs")
    if program is None:
        pytest.skip("bindfs is not installed (apt-get install bindfs)")
    point.mkdir(parents=True, exist_ok=True)
    argv = [program, "-f", "--no-allow-other", *options, str(source), str(point)]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + 15
        while not _is_mounted(point):
            if child.poll() is not None or time.monotonic() > end:
                assert child.stderr is not None
                child.kill()
                said = child.stderr.read().decode(errors="replace").strip()
                pytest.skip(f"bindfs cannot mount here: {said[-200:] or 'no answer'}")
            time.sleep(0.02)
        yield FuseMount(child, point)
    finally:
        if child.poll() is None:
            os.kill(child.pid, signal.SIGCONT)
        subprocess.run(["umount", "-l", str(point)], capture_output=True, timeout=20, check=False)
        child.kill()
        child.wait(10)


def _is_mounted(point: Path) -> bool:
    return any(line.split(" ")[4] == str(point) for line in Path("/proc/self/mountinfo").read_text().splitlines())
