"""flashinfer/jit/cpp_ext.py: runs ninja and waits at the pipe of its output."""

from __future__ import annotations

import subprocess
import sys

from sgmon.demo.play import Play


def run_ninja(play: Play) -> None:
    command = [sys.executable, "-m", "sgmon.demo.compilers", "ninja", str(play.speed), play.directory]
    subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)
