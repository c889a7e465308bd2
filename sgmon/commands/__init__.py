"""The commands without a screen. One file a command: ``add_arguments(parser)`` and ``run(args) -> exit code``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sgmon.model import Snapshot

#: exit codes. Of the state speak status, wait, log and record; every command says FAILED, USAGE and NO_SERVER alike
READY = 0
FAILED = 1
USAGE = 2
STALLED = 3
NOT_READY = 4
CRASHED = 5
NO_SERVER = 6

_BY_STATE = {
    "ready": READY,
    "stalled": STALLED,
    "stopped": STALLED,
    "crashed": CRASHED,
    "waiting": NO_SERVER,
}


def exit_code_of(snapshot: Snapshot) -> int:
    """The exit code of what is known now: a server that has ended counts as ready where it was so before."""
    if snapshot.verdict.state == "ended" and snapshot.has_been_ready:
        return READY
    return exit_code(snapshot.verdict.state)


def exit_code(state: str) -> int:
    """The exit code of a state; everything that is neither an end nor ready is "not ready (yet)"."""
    return _BY_STATE.get(state, NOT_READY)


#: for the help and the man page
EXIT_CODES = """\
  0 ready            3 stalled, stopped, or sure to fail (--fail-fast)
  1 sgmon failed     4 not ready in time, or ended before
  2 wrong usage      5 crashed            6 no server
  of every command: 0 done, 1, 2 (also a FILE that cannot be read), 6
  wait itself was ended: 130 by Ctrl-C, 143 by SIGTERM"""
