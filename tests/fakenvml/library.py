"""Builds the NVML double once per test run, and writes its state."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fakenvml.c")


def build(folder: Path) -> Path:
    """``folder`` with a libnvidia-ml.so.1 in it; skips the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = folder / "libnvidia-ml.so.1"
    flags = ["-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([compiler, *flags, "-o", str(library), str(SOURCE), "-lpthread"], check=True)
    return folder


class State:
    """The state file; the double reads it again when it is replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *lines: str) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        os.replace(fresh, self.path)
