"""Processes that look like a CUDA compiler at work: real processes, real CPU time, the names of the tools.

``python -m sgmon.demo.compilers TOOL SPEED DIRECTORY``. The tree is that of a real build (0.5.17, H200):
ninja > sh > nvcc > cudafe++, cicc, ptxas, cc1plus, each of the latter for some seconds.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time

import setproctitle

_PR_SET_NAME, _PR_SET_PDEATHSIG, _SIGKILL = 15, 1, 9
_SOURCE = "csrc/flashinfer_norm_binding.cu"

#: tool -> (command line as ps shows it, its children, seconds that it burns itself)
_TOOLS: dict[str, tuple[str, tuple[str, ...], float]] = {
    "ninja": ("ninja -v -C {cache} -f {cache}/build.ninja", ("sh",), 0.0),
    "sh": (
        "/bin/sh -c /usr/local/cuda/bin/nvcc --generate-dependencies-with-compile -MF {cache}/norm.cuda.o.d "
        "-c " + _SOURCE,
        ("nvcc",),
        0.0,
    ),
    "nvcc": (
        "/usr/local/cuda/bin/nvcc --generate-dependencies-with-compile -MF {cache}/norm.cuda.o.d "
        "-gencode=arch=compute_90a,code=sm_90a -c " + _SOURCE,
        ("cc1plus", "cudafe++", "cicc", "ptxas", "cicc", "ptxas"),
        0.0,
    ),
    "cc1plus": ("/usr/lib/gcc/x86_64-linux-gnu/13/cc1plus -E -quiet " + _SOURCE, (), 6.0),
    "cudafe++": ("cudafe++ --c++17 --orig_src_file_name " + _SOURCE, (), 4.0),
    "cicc": ("/usr/local/cuda/bin/../nvvm/bin/cicc --c++17 --orig_src_file_name " + _SOURCE, (), 12.0),
    "ptxas": ("ptxas -arch sm_90a -m64 /tmp/tmpxft_norm.ptx -o /tmp/tmpxft_norm.cubin", (), 5.0),
}


def main(tool: str, speed: str, directory: str) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    line, children, burn_s = _TOOLS[tool]
    setproctitle.setproctitle(line.format(cache=f"{directory}/cache/flashinfer/norm"))
    libc.prctl(_PR_SET_NAME, tool.encode())
    os.nice(19 - os.nice(0))
    for child in children:
        command = [sys.executable, "-m", "sgmon.demo.compilers", child, speed, directory]
        subprocess.run(command, check=True)
    until = time.monotonic() + burn_s / float(speed)
    while time.monotonic() < until:
        sum(range(2000))


if __name__ == "__main__":
    main(*sys.argv[1:])
