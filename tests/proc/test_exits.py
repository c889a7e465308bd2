"""Ends of real processes."""

from __future__ import annotations

import os

import pytest

from sgmon.proc import exits, stat

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd (Linux >= 5.3)")


def child(how: int) -> int:
    """A forked child that ends at once: exit code ``how``, or signal -how."""
    pid = os.fork()
    if pid == 0:
        if how < 0:
            os.kill(os.getpid(), -how)
        os._exit(how)
    return pid


@pytest.mark.parametrize(("how", "words"), [(3, "exit code 3"), (0, "exit code 0"), (-9, "signal 9 (SIGKILL)")])
def test_zombie_then_reaped(how, words):
    pid = child(how)
    fd = exits.open_pidfd(pid)
    assert fd is not None
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        zombie = stat.read("/proc", pid)
        assert zombie.state == "Z" and exits.has_ended(fd)
        assert exits.from_status(zombie.exit_status, "stat").words == words
        os.waitpid(pid, 0)
        told = exits.end_of(fd)
        assert told is None or told.words == words  # None: Linux before 6.15
    finally:
        os.close(fd)


def test_a_living_process_has_no_end():
    fd = exits.open_pidfd(os.getpid())
    assert fd is not None
    try:
        assert not exits.has_ended(fd) and exits.end_of(fd) is None
    finally:
        os.close(fd)
    assert exits.exists(os.getpid()) and exits.exists(1)


def test_no_such_process():
    assert exits.open_pidfd(2**22 + 7) is None
    assert not exits.exists(2**22 + 7)
    assert exits.End().words == "exit status unknown"
