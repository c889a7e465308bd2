"""What the tests with real runtimes ask of a start."""

from __future__ import annotations

import socket

from tests.real.watching import ALARMS, Watcher

SPEED = 6.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kinds(milestones) -> list[tuple[str, str]]:
    return sorted({(m.name, m.rank) for m in milestones})


def ready_as_on_the_host(watcher: Watcher, bare) -> None:
    """No alarm on the way, the ready line read, the port asked, and every milestone of a bare start."""
    watcher.wait_for("ready", timeout_s=120)
    assert not ALARMS & set(watcher.states()), watcher.history()
    assert kinds(watcher.snapshot.log.milestones) == bare
    assert watcher.snapshot.log.args.tp == 2 and watcher.snapshot.port.status == 200
