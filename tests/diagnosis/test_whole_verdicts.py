"""Verdicts with all that they rest on and advise: rule, sureness, evidence, next step."""

from __future__ import annotations

import pytest

from sgmon.analyse.diagnosis.grammar import verb
from sgmon.analyse.diagnosis.load import Load, load_fact
from sgmon.analyse.store import Store
from sgmon.model import Compiler, Event, ProbeReading, ServerArgs
from tests.diagnosis.world import World

GIB = 2**30


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (
            Load(4 * GIB, 16 * GIB, 512 * 2**20, 0.25, 24.0, "bar", ("a", "b"), "/models", "ext4"),
            "4.0 GiB of 16.0 GiB read, 25% by the bar, 512 MiB/s, 24s to go, 2 shards mapped now, ext4 on /models",
        ),
        (Load(15 * GIB, 16 * GIB, 0.0, 1.0, 0.0, "bar"), "15.0 GiB of 16.0 GiB read, 100% by the bar, 0 B/s"),
        (Load(4 * GIB, None, None, None, None, "", why="its end is not known"), "4.0 GiB read, time to go unknown: its end is not known"),
        (Load(None, None, None, None, None, ""), "no bytes could be counted"),
    ],
)  # fmt: skip
def test_how_far_a_load_is(load: Load, words: str) -> None:
    fact = load_fact(load)
    assert (fact.text, fact.value) == (words, load.done_bytes)


def test_a_gate_names_its_flag_and_what_opens_it() -> None:
    world = World(2, args=ServerArgs(tp=2, gated_launch_port=31999)).to("dist_init")
    world.everywhere("Init torch distributed ends. elapsed=1.00 s, mem usage=1.00 GB")
    for rank in world.ranks:
        rank.idle()
    world.log("TP0: Gated launch still waiting for activation. rank=0 elapsed=10 s")
    found = world.run(10).verdict
    assert (found.rule, found.confidence, found.phase) == ("gate", 0.95, "dist_init")
    assert "started with --gated-launch-port 31999" in [one.text for one in found.evidence]
    assert found.next[0].command == "curl -X POST http://127.0.0.1:31999/gate/activate"


def test_one_subject_and_several() -> None:
    ranks = World(2).to("dist_init").run(2).store.snapshot.ranks
    assert [verb(ranks[:count], "waits", "wait") for count in (1, 2)] == ["waits", "wait"]


def test_the_first_look_at_a_compiler() -> None:
    world = World(1)
    world[0].does(compilers=(Compiler(7, "ninja", "ext"),))
    found = world.to("weights").run(1).verdict
    assert (found.state, found.rule, found.confidence) == ("progressing", "first-look", 0.7)
    assert [one.signal for one in found.evidence] == ["compiler", "log"]


def test_a_command_that_ended_names_what_to_read() -> None:
    store = Store(0.0)
    store.step(Event(1.0, "probe", ProbeReading("command", error="it ended with 3", remedy="less /l")))
    found = store.step(Event(2.0, "tick")).verdict
    assert (found.state, found.rule, found.phase) == ("crashed", "command-ended", "launch")
    assert (found.headline, found.next[0].command) == ("it ended with 3", "less /l")


def test_no_server() -> None:
    found = Store(0.0).step(Event(1.0, "tick")).verdict
    assert (found.state, found.rule, found.confidence) == ("waiting", "no-server", 1.0)
