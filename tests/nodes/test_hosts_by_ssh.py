"""Several hosts by ssh: what comes from them, and what is said of links that fail."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sgmon.model import NodeReading
from sgmon.remote import link
from sgmon.remote.hosts import reach
from sgmon.settings import Settings
from tests.nodes import hosts
from tests.nodes.hosts import Cluster, Host
from tests.nodes.watching import Watch


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    hosts.need()
    with Cluster(2) as cluster:
        cluster.hosts[0].demo("healthy", "--tp", "2", "--speed", "15", "--port", "30000")
        cluster.hosts[1].demo("healthy", "--tp", "3", "--speed", "15", "--port", "30000")
        yield cluster


def watch(cluster: Cluster, *names: str) -> Watch:
    """A watch of these hosts, of all without names."""
    wanted = names or tuple(host.name for host in cluster.hosts)
    return Watch([reach(name, cluster.via) for name in wanted], Settings(port=30000))


def ranks(seen: Watch, name: str) -> int:
    return len([rank for rank in seen.snapshot(name).ranks if rank.name.startswith("TP")])


def until_state(seen: Watch, name: str, state: str) -> NodeReading:
    seen.wait_for(lambda: seen.state(name) == state)
    return seen.links[name][-1]


def test_each_host_is_seen_with_its_own_server(two):
    with watch(two) as seen:
        seen.wait_for(lambda: (ranks(seen, "node-a"), ranks(seen, "node-b")) == (2, 3))
        for name in ("node-a", "node-b"):
            found = until_state(seen, name, "live")
            assert found.hostname == name
            assert found.round_trip_s is not None
            assert abs(found.offset_s) <= found.offset_error_s + 0.05  # one clock in truth
            seen.wait_for(lambda name=name: seen.snapshot(name).log.lines)
        assert seen.stop() < 2.0


def test_a_cable_that_is_pulled_stops_neither_the_other_host_nor_the_end(two):
    b = two.hosts[1]
    with watch(two) as seen:
        seen.wait_for(lambda: ranks(seen, "node-a") == 2 and ranks(seen, "node-b") == 3)
        b.cut()
        try:
            found = until_state(seen, "node-b", "stale")
            assert "the link or the host hangs" in found.why
            since = seen.clock.now()
            seen.wait_for(lambda: len(seen.since(since, "node-a", "procs")) >= 2)
            assert seen.since(since, "node-b", "procs") == []
            assert seen.stop() < 2.0
        finally:
            b.cut(False)


def test_a_host_that_swallows_everything_comes_back_with_its_backlog(two):
    b = two.hosts[1]
    with watch(two, "node-b") as seen:
        seen.wait_for(lambda: ranks(seen, "node-b") == 3)
        b.swallow()
        try:
            until_state(seen, "node-b", "stale")
        finally:
            b.swallow(False)
        since = seen.clock.now()
        until_state(seen, "node-b", "live")
        readings = seen.wait_for(lambda: seen.since(since, "node-b", "procs"))
        assert readings
        assert all(event.t <= seen.clock.now() + 0.1 for event in readings)


def test_a_host_that_loses_its_power_is_lost_and_found_again():
    hosts.need()
    with Cluster(1) as one, watch(one) as seen:
        host = one.hosts[0]
        until_state(seen, "node-a", "live")
        host.halt()
        found = until_state(seen, "node-a", "lost")
        assert found.why
        assert found.remedy
        host.boot()
        until_state(seen, "node-a", "live")


@pytest.mark.parametrize(
    ("config", "state", "why", "remedy"),
    [
        ({"key": "stranger"}, "failed", "Permission denied (publickey)", "ssh-add"),
        ({"known": "stranger"}, "failed", "Host key verification failed", "ssh-keygen -R node-a"),
        ({"port": 23}, "connecting", "Connection refused", "sshd"),
    ],
)
def test_why_ssh_does_not_come_through(two, config, state, why, remedy):
    two.write_client_config(**config)
    try:
        with watch(two, "node-a") as seen:
            found = seen.wait_for(lambda: next((one for one in list(seen.links["node-a"]) if one.why), None))
            assert (found.state, why in found.why, remedy in found.remedy) == (state, True, True), found
    finally:
        two.write_client_config()


def test_a_name_that_nobody_knows(two):
    with watch(two, "nowhere.invalid") as seen:
        found = until_state(seen, "nowhere.invalid", "failed")
        assert "resolve" in found.why


def sent_in(host: Host, seconds: float) -> float:
    """Bytes a second that it sends into the network."""
    before, began = host.received(), time.monotonic()
    time.sleep(seconds)
    return (host.received() - before) / (time.monotonic() - began)


@pytest.mark.nodes
def test_a_watch_costs_few_bytes_and_a_slow_link_is_no_stale_one(two, monkeypatch):
    monkeypatch.setattr(link, "STALE_S", 6.0)
    b = two.hosts[1]
    with watch(two) as seen:
        seen.wait_for(lambda: ranks(seen, "node-b") == 3)
        seen.wait_for(lambda: seen.clock.now() > 12.0)
        assert sent_in(b, 10.0) < 16_000
        b.slow("64kbit")
        try:
            since = seen.clock.now()
            seen.wait_for(lambda: len(seen.since(since, "node-b", "procs")) >= 10)
            assert "stale" not in [one.state for one in seen.links["node-b"]]
        finally:
            b.slow(None)


@pytest.mark.nodes
def test_a_first_picture_comes_over_a_slow_link(two):
    b = two.hosts[1]
    b.slow("1mbit")
    try:
        with watch(two, "node-b") as seen:
            seen.wait_for(lambda: ranks(seen, "node-b") == 3, 120)
    finally:
        b.slow(None)


@pytest.mark.nodes
def test_four_hosts():
    hosts.need()
    with Cluster(4) as four:
        for number, host in enumerate(four.hosts):
            host.demo("healthy", "--tp", str(number + 2), "--speed", "15", "--port", "30000")
        with watch(four) as seen:
            seen.wait_for(lambda: [ranks(seen, host.name) for host in four.hosts] == [2, 3, 4, 5])
            four.hosts[3].cut()
            until_state(seen, "node-d", "stale")
            since = seen.clock.now()
            seen.wait_for(lambda: all(seen.since(since, host.name, "procs") for host in four.hosts[:3]))
            assert seen.stop() < 2.0
