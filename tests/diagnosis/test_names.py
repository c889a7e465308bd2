"""A rendezvous address that nobody can resolve: the headline says so, and no node is blamed for it."""

from __future__ import annotations

import pytest

from sgmon.model import Event, ServerArgs
from sgmon.model.preflight import Preflight, Resolved
from tests.diagnosis.replay import replay
from tests.diagnosis.world import World

#: torch 2.11's, at each attempt
LINE = (
    "[W1130 02:55:{second:02}.487308417 socket.cpp:764] [c10d] The IPv6 network addresses of (head.invalid, 5012)"
    " cannot be retrieved (gai error: {error}).\n"
)
UNKNOWN = "-2 - Name or service not known"
TIMEOUT = (
    "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to"
    " (head.invalid, 5012).\n"
)

NOT_JOINED = (
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n"
)


def started(node: int, **args: object) -> World:
    given = {"tp": 4, "nnodes": 2, "node_rank": node, "dist_init_addr": "head.invalid:5012", **args}
    world = World(2, args=ServerArgs(**given)).to("dist_init")
    for rank in world.ranks:
        rank.store_wait()
    return world.run(3)


@pytest.mark.parametrize(
    ("node", "args", "state"),
    [
        (1, {}, "waiting-by-design"),
        (0, {}, "suspect"),
        (0, {"nnodes": 1, "tp": 2, "dist_init_addr": ""}, "suspect"),  # MASTER_ADDR
    ],
)
def test_the_headline_of_a_start_that_goes_on_has_the_name_and_the_resolvers_words(node, args, state):
    world = started(node, **args)
    for second in (1, 3, 5, 7):
        world.raw(LINE.format(second=second, error=UNKNOWN))
        world.run(2)
    assert world.verdict.state == state
    assert world.verdict.headline == (
        "the rendezvous head.invalid:5012 cannot be resolved: Name or service not known; TP0-1 wait for it"
    )
    assert "said 4 times" in world.verdict.evidence[0].text
    assert world.verdict.next[0].command == "getent hosts head.invalid"
    assert "node" not in "".join(world.verdict.odd_ranks)
    world.run(60)
    assert world.verdict.state == ("waiting-by-design" if node else "stalled")
    world.run(260)
    assert world.verdict.state == "stalled"


@pytest.mark.parametrize("timeout", [TIMEOUT, NOT_JOINED])
def test_the_headline_of_the_failed_start_has_it_too(timeout):
    world = started(0)
    for second in (1, 3, 5, 7):
        world.raw(LINE.format(second=second, error=UNKNOWN))
        world.run(2)
    world.log("TP0: Scheduler hit an exception: Traceback (most recent call last):")
    world.raw(timeout)
    for rank in (*world.ranks, world.launcher):
        rank.does(gone=True)
    world.run(8)
    assert world.verdict.state == "crashed"
    assert "the rendezvous head.invalid:5012 cannot be resolved: Name or service not known" in world.verdict.headline


@pytest.mark.parametrize(
    "error", ["-9 - Address family for hostname not supported", UNKNOWN], ids=["other family", "once"]
)
def test_a_name_of_one_family_is_no_failure(error):
    """torch tries IPv6 first: it says so once, and reaches the name by IPv4."""
    world = started(0)
    world.raw(LINE.format(second=1, error=error))
    if error != UNKNOWN:
        world.raw(LINE.format(second=3, error=error))
    world.run(20)
    assert (world.verdict.state, world.verdict.rule) == ("waiting-by-design", "node-missing")


def test_the_resolver_is_believed_where_there_is_no_log():
    """vLLM's --master-addr is read as the same argument; what the arguments name was looked up at the start."""
    world = started(1)
    unknown = Resolved("rendezvous", "head.invalid", error="unknown", words="Name or service not known")
    world.step(Event(world.t, "preflight", Preflight((100, 1), resolved=(unknown,))))
    world.run(3)
    assert world.verdict.headline.startswith("the rendezvous head.invalid:5012 cannot be resolved: Name or service")
    known = Resolved("rendezvous", "head.invalid", ("10.0.0.1",))
    world.step(Event(world.t, "preflight", Preflight((100, 1), resolved=(known,))))
    world.run(20)
    assert world.verdict.rule == "node-missing"


@pytest.mark.parametrize(
    ("name", "states"),
    [
        # node 0's own name: it was looked up before anything was tried
        ("cpu-live-unresolved-node0", ("will-fail", "crashed")),
        ("cpu-live-unresolved-node1", ("waiting-by-design", "crashed")),
    ],
)
def test_a_real_start_whose_rendezvous_has_an_unknown_name(name, states):
    """SGLang 0.5.23, --nnodes 2 --dist-init-addr nosuchhost.invalid:5077 --dist-timeout 25, sgmon beside it."""
    changes, last = replay(name)
    said = [change.verdict for change in changes if change.verdict.phase in ("dist_init", "launch", "spawn")]
    found = [verdict.state for verdict in said if "nosuchhost.invalid" in verdict.headline]
    assert [state for state in states if state in found] == list(states)
    assert all(verdict.rule != "node-missing" and verdict.state != "suspect" for verdict in said)
    assert last.verdict.headline == (
        "the rendezvous nosuchhost.invalid:5077 cannot be resolved: Name or service not known"
        " (distributed initialisation)"
    )
