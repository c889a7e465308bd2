"""Within a start a phase does not go back, without any log too; a rank has its own phase."""

from __future__ import annotations

import pytest

from sgmon.model import Listener, PortReading
from sgmon.servers.registry import get
from tests.diagnosis import replay as replays
from tests.diagnosis.replay import Change, replay
from tests.diagnosis.world import MB, Compiler, Shards, World

ORDER = get("sglang").phases.order


def going_back(changes: list[Change]) -> list[tuple[float, str, str]]:
    pairs = [(changes[at - 1], change) for at, change in enumerate(changes) if at]
    return [
        (after.t, before.verdict.phase, after.verdict.phase)
        for before, after in pairs
        if before.verdict.phase and after.verdict.phase and ORDER(after.verdict.phase) < ORDER(before.verdict.phase)
    ]


@pytest.mark.parametrize("name", ["field-h200-ngram2", "field-cpu-podman"])
def test_without_a_log_no_phase_goes_back(name: str) -> None:
    """A pty and a pipe: the phase by titles, stacks and the port. In the second a rank is stopped after it was ready."""
    changes, snapshot = replay(name)
    assert not going_back(changes)
    assert any(change.verdict.state == "ready" for change in changes)
    if name.endswith("podman"):
        assert (snapshot.verdict.state, snapshot.verdict.odd_ranks) == ("stopped", ("TP1",))
        assert snapshot.verdict.phase == "serving"


def silent(**what: object) -> World:
    world = World(1)
    world[0].does(**what)
    return world


def test_compilers_are_no_graph_capture_before_the_load_or_without_graphs() -> None:
    world = silent(compilers=(Compiler(7, "cicc"),), state="R", cpu=0.9)
    world.run(5)
    assert world.store.snapshot.phase == "dist_init"
    world[0].does(shards=Shards(("model-00001-of-00001.safetensors",), 0, "/m", "ext4"), read=80 * MB)
    world.run(5)
    assert world.store.snapshot.phase == "weights"
    world[0].does(shards=None, read=0)
    world.run(5)
    assert world.store.snapshot.phase == "graphs"
    world[0].does(compilers=())
    world.run(5)
    assert world.store.snapshot.phase == "graphs", "it does not go back"


def test_a_server_of_another_user_is_ready_by_its_200() -> None:
    """Whose socket it is cannot be read, no log can be read either."""
    world = silent(state="R", cpu=0.9)
    world.run(5)
    who = (Listener("127.0.0.1:30000", None, None),)
    world.port = PortReading("127.0.0.1", 30000, "http", 200, 0.2, "/health", who)
    world.run(10)
    assert (world.verdict.state, world.store.snapshot.phase) == ("ready", "serving")
    assert any("could not be read" in e.text for e in world.verdict.evidence)


def test_a_rank_whose_stack_shows_an_earlier_phase_than_the_launcher_is_in_it() -> None:
    changes, snapshot = replay("cpu-tp1-stuck-init")
    last = changes[-1].verdict
    assert (last.state, last.phase) == ("stalled", "scheduler_ready")
    assert "in the scheduler start, in Scheduler.__init__" in last.headline
    assert snapshot.phase == "http", "the server's own"
    assert replays.states(changes)[-2:] == ["suspect", "stalled"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("field-cpu-bad-notok", "ValueError: Couldn't instantiate the backend tokenizer"),
        ("field-h200-held_mem", "80.5 GiB of GPU 1 held by pid 14181"),
        ("field-h200-orphans_new2", "NCCL failed (warm-up); 128 GiB of GPU 0 held by pid 23644"),
    ],
)
def test_a_crash_names_its_fact_and_who_holds_the_memory(name: str, words: str) -> None:
    _, snapshot = replay(name)
    assert snapshot.verdict.state == "crashed"
    assert words in snapshot.verdict.headline
