"""What the tests with real runtimes ask of a start."""

from __future__ import annotations

import time

from tests.logs.runtimes import Runtime
from tests.real.watching import ALARMS, Watcher
from tests.waiting import free_port

SPEED = 12.0


def kinds(milestones) -> list[tuple[str, str]]:
    return sorted({(m.name, m.rank) for m in milestones})


def ready_as_on_the_host(watcher: Watcher, bare) -> None:
    """No alarm on the way, the ready line read, the port asked, and every milestone of a bare start."""
    watcher.wait_for("ready", timeout_s=120)
    assert not ALARMS & set(watcher.states()), watcher.history()
    end = time.monotonic() + 20
    while kinds(watcher.snapshot.log.milestones) != bare and time.monotonic() < end:
        time.sleep(0.1)  # the port may be asked before the last line is read
    read = kinds(watcher.snapshot.log.milestones)
    assert read == bare, f"missing: {set(bare) - set(read)}, more: {set(read) - set(bare)}"
    assert watcher.snapshot.log.args.tp == 2 and watcher.snapshot.port.status == 200


def serve(runtime: Runtime, *options: str, scenario: str = "healthy", network: str = "host", speed: float = SPEED):
    command = ("-m", "tests.logs.in_container", scenario, "2", str(free_port()), str(speed))
    return runtime.start(*command, options=options, network=network)
