"""A read that may never return, made by a child process: it can be left behind, where a thread stuck in state D would
keep sgmon itself from ending."""

from __future__ import annotations

import subprocess

from sgmon.paths import code_descriptors


def output(argv: list[str], deadline_s: float, codes: tuple[int, ...] = (0,)) -> bytes | None:
    """What ``argv`` prints; None when it fails (ends with none of ``codes``), or has not ended after ``deadline_s``
    seconds. It runs in a session of its own, with nothing to read and its complaints thrown away."""
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=code_descriptors(),
        )
    except OSError:
        return None
    try:
        printed = child.communicate(timeout=deadline_s)[0]
    except subprocess.TimeoutExpired:
        child.kill()  # not waited for: in state D it outlives the signal
        return None
    return printed if child.returncode in codes else None
