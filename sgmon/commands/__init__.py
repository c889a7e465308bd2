"""The commands without a screen. One file a command: ``add_arguments(parser)`` and ``run(args) -> exit code``."""

#: exit codes of status, wait and log
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


def exit_code(state: str) -> int:
    """The exit code of a state; everything that is neither an end nor ready is "not ready (yet)"."""
    return _BY_STATE.get(state, NOT_READY)
