"""A watched folder that grows is a sign of life, and said; one that does not grow excuses nothing."""

from __future__ import annotations

import msgspec

from sgmon.export.json import status_report
from sgmon.export.text import as_text
from sgmon.model import Event, WatchDirReading, WatchedDir
from tests.diagnosis.world import MB, World


def hung(world: World) -> None:
    for rank in world.ranks:
        rank.idle()


def dumped(world: World, files: int, size: int) -> None:
    folder = WatchedDir("/dev/shm/dump", files, size, size, world.t, False)
    world.step(Event(world.t, "watchdir", WatchDirReading((folder,))))


def test_ranks_look_idle_while_files_grow() -> None:
    """A server that was patched to dump tensors to shared memory: nothing else of it moves."""
    world = World(2, gpu=False).to("graphs")
    hung(world)
    for step in range(60):
        dumped(world, step, step * MB)
        world.run(2)
    assert world.states() == ["progressing"]
    assert world.verdict.headline == "graph capture: a watched folder grows"
    facts = [e.text for e in world.verdict.evidence if e.signal == "files"]
    assert len(facts) == 1 and facts[0].startswith("/dev/shm/dump: 59 files, 56.3 MiB")
    began = world.t
    for _ in range(30):
        dumped_again = WatchedDir("/dev/shm/dump", 59, 59 * MB, 59 * MB, began - 2, False)
        world.step(Event(world.t, "watchdir", WatchDirReading((dumped_again,))))
        world.run(2)
    assert world.verdict.state == "stalled"
    assert any("last change 1m" in e.text for e in world.verdict.evidence if e.signal == "files")


def test_spinning_ranks_that_write_are_at_work() -> None:
    world = World(2, gpu=False).to("dist_init")
    for rank in world.ranks:
        rank.compute()
    for step in range(60):
        dumped(world, step, step * MB)
        world.run(2)
    assert "suspect" not in world.states()


def test_in_the_report() -> None:
    world = World(1)
    dumped(world, 3, 5 * MB)
    dumped(world, 4, 6 * MB)
    world.run(2)
    said = msgspec.to_builtins(status_report(world.store.snapshot))["watch_dirs"]
    assert [(one["path"], one["files"], one["size_bytes"]) for one in said] == [("/dev/shm/dump", 4, 6 * MB)]
    assert any(line.startswith("files   /dev/shm/dump: 4 files") for line in as_text(world.store.snapshot))


def test_files_that_go_are_no_sign() -> None:
    world = World(1).to("graphs")
    hung(world)
    world.run(1)
    for step in range(30):
        seen = WatchedDir("/dev/shm/dump", 100 - step, 100 * MB - step, 100 * MB - step, 0.5, False)
        world.step(Event(world.t, "watchdir", WatchDirReading((seen,))))
        world.run(2)
    assert world.verdict.state == "stalled"
