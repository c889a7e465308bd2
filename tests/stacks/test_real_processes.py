"""Stacks of eight real Python processes, one of them elsewhere, stopped, dead, or at work."""

from __future__ import annotations

from sgmon.model import StackDump
from sgmon.probes.base import Clock, Watched
from sgmon.probes.pyspy import StackProbe
from sgmon.settings import Settings
from sgmon.stacks.merge import merge
from sgmon.stacks.refusals import ZOMBIE
from sgmon.stacks.render import heading
from tests.stacks.eight import Ranks, ranks

SEVEN_AND_ONE = ["barrier"] * 3 + ["read_shard"] + ["barrier"] * 4


def dump(found: Ranks, samples: int = 2) -> tuple[StackDump, ...]:
    probe = StackProbe(Watched(Settings(), Clock()), lambda: found.processes)
    probe.request([process.pid for process in found.processes], samples, interval_s=0.05)
    while True:
        reading = probe.read()
        if reading is not None and reading.done:
            probe.close()
            return reading.dumps


def test_one_of_eight_elsewhere_and_frozen() -> None:
    with ranks(SEVEN_AND_ONE) as found:
        dumps = dump(found)
    assert len(dumps) == 16
    odd, rest = merge(dumps)
    assert (odd.ranks, odd.odd, odd.moving) == (("TP3",), True, False)
    assert odd.frames[0].function == "read_shard"
    assert rest.ranks == ("TP0", "TP1", "TP2", "TP4", "TP5", "TP6", "TP7")
    assert heading([odd, rest]) == "[TP0-2,4-7] | missing TP3"


def test_a_stopped_one_still_shows_its_stack() -> None:
    with ranks(["barrier", "read_shard"]) as found:
        found.stop(1)
        dumps = dump(found, 1)
    by_rank = {dump.rank: dump for dump in dumps}
    assert by_rank["TP1"].threads[0].frames[0].function == "read_shard"


def test_a_zombie_is_named_dead_and_odd() -> None:
    with ranks(["barrier"] * 3) as found:
        found.make_zombie(2)
        odd, rest = merge(dump(found, 1))
    assert (odd.ranks, odd.odd, odd.note) == (("TP2",), True, ZOMBIE.why)
    assert rest.ranks == ("TP0", "TP1")


def test_one_at_work_moves() -> None:
    with ranks(["barrier", "barrier", "compute_layer"]) as found:
        classes = merge(dump(found, 4))
    assert classes[0].ranks == ("TP2",)
    assert classes[0].odd
    assert any(frame.function == "compute_layer" for frame in classes[0].frames)
