"""The other machines of a start are proposed, never watched unasked; this machine is one among them when it is named."""

from __future__ import annotations

import socket

from msgspec.structs import replace

from sgmon.analyse.diagnosis import other_nodes
from sgmon.commands.live import source_of
from sgmon.model import Process, ProcsReading, Role, Server, ServerArgs, Snapshot, TcpPeer
from sgmon.settings import Settings
from tests.nodes.watching import Watch


def snapshot(args: ServerArgs, *remotes: str) -> Snapshot:
    tcp = tuple(TcpPeer("10.0.0.1:5000", remote, "ESTAB") for remote in remotes)
    rank = Process(pid=2, ppid=1, start_ticks=1, role=Role.WORKER, tcp=tcp)
    server = Server(pid=1, start_ticks=1, args=args)
    return Snapshot(server=server, procs=ProcsReading((rank,)))


def test_the_rendezvous_and_the_peers_are_the_other_nodes():
    args = ServerArgs(nnodes=3, node_rank=1, dist_init_addr="head.cluster:20000")
    seen = snapshot(args, "10.0.0.3:41000", "127.0.0.1:30000", "10.0.0.1:6000", "10.0.0.3:42000", "[fd00::7]:9")
    assert other_nodes.others(seen) == ("head.cluster", "10.0.0.3", "fd00::7")
    (step,) = other_nodes.steps(seen, "stalled")
    assert step.command == "sgmon --host localhost --host head.cluster --host 10.0.0.3 --host fd00::7"


def test_the_node_that_offers_the_rendezvous_knows_its_peers_alone():
    args = ServerArgs(nnodes=2, node_rank=0, dist_init_addr="10.0.0.1:20000")
    assert other_nodes.others(snapshot(args)) == ()
    assert other_nodes.steps(snapshot(args), "suspect")[0].command == "sgmon --host localhost --host NAME"
    assert other_nodes.others(snapshot(args, "10.0.0.2:4")) == ("10.0.0.2",)


def test_nothing_is_proposed_for_one_node_or_where_all_is_well():
    assert other_nodes.steps(snapshot(ServerArgs(), "10.0.0.2:4"), "stalled") == ()
    assert other_nodes.steps(snapshot(replace(ServerArgs(), nnodes=2), "10.0.0.2:4"), "progressing") == ()


def test_this_machine_among_others_needs_no_command():
    source = source_of(Settings(hosts=("localhost", "far.invalid")))
    assert [node.name for node in source.nodes] == [socket.gethostname(), "far.invalid"]
    here = source.nodes[0]._reach
    with Watch([here], Settings(gpu=False)) as watch:
        watch.wait_for(lambda: watch.state(here.name) == "live")
