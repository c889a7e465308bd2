"""Real servers on two hosts (namespaces with an sshd each), watched by ssh from a third place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from sgmon.model import Rank
from tests.nodes import hosts
from tests.nodes.hosts import Cluster, Host
from tests.real import measured
from tests.real.server import HOME, RealServer, drop_page_cache
from tests.real.vllm import server as vllm
from tests.real.vllm.server import VllmServer
from tests.real.watching import ALARMS, Said, Watcher, watching
from tests.waiting import eventually

PORT = 30000
RENDEZVOUS = 20500
START_S = 300.0


class Pair:
    """A server on two hosts. Node 1 begins when it is told to."""

    def __init__(self, cluster: Cluster, directory: Path, model: str, is_vllm: bool, ending: ExitStack) -> None:
        self.cluster = cluster
        self.nodes = tuple(cluster.hosts)
        self._ending = ending
        self._servers = [self._server(directory, model, number, is_vllm) for number in (0, 1)]

    def _server(self, directory: Path, model: str, number: int, is_vllm: bool) -> RealServer:
        first = self.nodes[0].address
        flags = [*("--nnodes", "2", "--node-rank", str(number))]
        if is_vllm:
            flags += ["-tp", "2", "--master-addr", first, "--master-port", str(RENDEZVOUS)]
            flags += ["--headless"] if number else []
        else:
            flags += ["--tp", "2", "--dist-init-addr", f"{first}:{RENDEZVOUS}"]
        kind = VllmServer if is_vllm else RealServer
        env = {"GLOO_SOCKET_IFNAME": "eth0"} | ({"VLLM_HOST_IP": self.nodes[number].address} if is_vllm else {})
        return kind(
            directory, model, *flags, port=PORT, env=env, log=f"node{number}.log", wrap=self.nodes[number].inside()
        )

    def start(self, number: int) -> float:
        """When it was started (wall clock)."""
        self._ending.enter_context(_running(self._servers[number]))
        return time.time()

    def watch(self, path: Path) -> Watcher:
        names = tuple(host.name for host in self.nodes)
        return self._ending.enter_context(watching(path, hosts=names, via=self.cluster.via, port=PORT))

    def texts(self) -> str:
        return "\n".join(server.text()[-2000:] for server in self._servers if server.log.exists())


@contextmanager
def _running(server: RealServer) -> Iterator[None]:
    server.start()
    try:
        yield
    finally:
        server.stop()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    yield from _pair(tmp_path, "tiny", False)


@pytest.fixture
def loading_pair(tmp_path: Path) -> Iterator[Pair]:
    """Its weights take some seconds."""
    drop_page_cache(HOME / "models" / "mid")
    yield from _pair(tmp_path, "mid", False)


@pytest.fixture
def vllm_pair(tmp_path: Path) -> Iterator[Pair]:
    if not vllm.INSTALLED:
        pytest.skip(vllm.HOW)
    yield from _pair(tmp_path, "tiny", True)


def _pair(directory: Path, model: str, is_vllm: bool) -> Iterator[Pair]:
    hosts.need()
    with Cluster(2) as cluster, ExitStack() as ending:
        yield Pair(cluster, directory, model, is_vllm, ending)


def rank_on(watcher: Watcher, host: Host) -> Rank | None:
    """The rank whose process is on this host."""
    return next(
        (
            rank
            for rank in watcher.snapshot.ranks
            if rank.node == host.name and rank.name.startswith("TP") and rank.process.alive
        ),
        None,
    )


def wait_until(watcher: Watcher, condition: Callable[[], object], seconds: float = START_S) -> None:
    eventually(condition, seconds, watcher.history)


def kill_rank_of_node_1(pair: Pair, watcher: Watcher, what: str) -> Said:
    """The verdict "crashed" that follows."""
    victim = rank_on(watcher, pair.nodes[1])
    assert victim is not None
    killed = time.time()
    pair.nodes[1].run("kill", "-KILL", str(victim.process.pid))
    crashed = watcher.wait_for("crashed", after=killed, timeout_s=60)
    measured.fault(what, watcher, killed, crashed)
    return crashed


def _both_run(pair: Pair, watcher: Watcher) -> Rank:
    """Both nodes are started, and a rank of each is there; the one on node 1."""
    pair.start(0)
    pair.start(1)
    wait_until(watcher, lambda: rank_on(watcher, pair.nodes[1]) and rank_on(watcher, pair.nodes[0]))
    found = rank_on(watcher, pair.nodes[1])
    assert found is not None
    return found


def test_node_1_comes_late_and_then_all_is_well(pair: Pair, tmp_path: Path) -> None:
    watcher = pair.watch(tmp_path / "late.jsonl.gz")
    began = pair.start(0)
    waits = watcher.wait_for(
        "waiting-by-design", "suspect", "stalled", "waiting", after=began + 15.0, timeout_s=START_S
    )
    measured.fault("SGLang, two hosts: node 1 late", watcher, began, waits)
    assert "node" in waits.verdict.headline, watcher.history()
    late = pair.start(1)
    ready = watcher.wait_for("ready", "crashed", after=late, timeout_s=START_S)
    assert ready.state == "ready", f"{watcher.history()}\n{pair.texts()}"
    assert not ALARMS & set(watcher.states(after=late)), watcher.history()
    wait_until(
        watcher,
        lambda: {rank.node for rank in watcher.snapshot.ranks if rank.process.alive} >= {"node-a", "node-b"},
        30,
    )
    for view in watcher.snapshot.nodes:
        assert view.reading is not None
        assert view.reading.state == "live"
        assert (view.reading.bytes_per_s or 0.0) < 20_000
        print("NODE", view.reading)


def test_the_rank_of_node_1_is_killed(loading_pair: Pair, tmp_path: Path) -> None:
    pair = loading_pair
    watcher = pair.watch(tmp_path / "killed.jsonl.gz")
    _both_run(pair, watcher)
    kill_rank_of_node_1(pair, watcher, "SGLang, two hosts: a rank of node 1 killed")
    time.sleep(6.0)
    headline = watcher.snapshot.verdict.headline
    assert "node-b" in headline, watcher.history()
    assert "SIGKILL" in headline, watcher.history()


def test_the_link_to_node_1_is_cut(pair: Pair, tmp_path: Path) -> None:
    """The server's own traffic is cut as well: its ranks wait, and the watch says whom it cannot hear."""
    watcher = pair.watch(tmp_path / "cut.jsonl.gz")
    _both_run(pair, watcher)
    pair.nodes[1].cut()
    cut = time.time()
    try:
        wait_until(watcher, lambda: any(not view.heard for view in watcher.snapshot.nodes), 60)
        print(f"CUT seen after {time.time() - cut:.1f} s")
        evidence = lambda: [fact.text for fact in watcher.snapshot.verdict.evidence]  # noqa: E731
        wait_until(watcher, lambda: any("node-b" in words for words in evidence()), 30)
        assert "crashed" not in watcher.states(after=cut), watcher.history()
        print("CUT", watcher.snapshot.verdict.headline, evidence())
    finally:
        pair.nodes[1].cut(False)
    wait_until(watcher, lambda: all(view.heard for view in watcher.snapshot.nodes), 60)


def test_the_rank_of_node_1_is_paused_and_then_its_launcher_killed(loading_pair: Pair, tmp_path: Path) -> None:
    pair = loading_pair
    watcher = pair.watch(tmp_path / "paused.jsonl.gz")
    victim = _both_run(pair, watcher)
    paused = time.time()
    pair.nodes[1].run("kill", "-STOP", str(victim.process.pid))
    stopped = watcher.wait_for("stopped", "crashed", after=paused, timeout_s=60)
    measured.fault("SGLang, two hosts: the rank of node 1 paused", watcher, paused, stopped)
    assert stopped.verdict.nodes == ("node-b",), watcher.history()
    assert stopped.verdict.odd_ranks == (victim.name,), watcher.history()
    pair.nodes[1].run("kill", "-CONT", str(victim.process.pid))
    wait_until(watcher, lambda: watcher.snapshot.verdict.state != "stopped", 30)
    launcher = watcher.snapshot.nodes[1].snapshot.server
    assert launcher is not None
    killed = time.time()
    pair.nodes[1].run("kill", "-KILL", str(launcher.pid))
    crashed = watcher.wait_for("crashed", "ended", after=killed, timeout_s=90)
    measured.fault("SGLang, two hosts: the launcher of node 1 killed", watcher, killed, crashed)
    time.sleep(10.0)
    last = watcher.snapshot.verdict
    print("LAUNCHER", last.state, last.headline, [fact.text for fact in last.evidence])
    assert last.state == "crashed", watcher.history()
    assert last.nodes == ("node-b",), watcher.history()
    assert "SIGKILL" in last.headline, watcher.history()


def test_node_1_stops_as_a_whole(pair: Pair, tmp_path: Path) -> None:
    """As a virtual machine that is paused: nothing on it runs, its network answers; then it goes on."""
    watcher = pair.watch(tmp_path / "frozen.jsonl.gz")
    _both_run(pair, watcher)
    paused = time.time()
    pair.nodes[1].pause()
    try:
        wait_until(watcher, lambda: not watcher.snapshot.nodes[1].heard, 60)
        print(f"FROZEN seen after {time.time() - paused:.1f} s")
        words = watcher.wait_for("unknown", "waiting-by-design", "stalled", after=paused, timeout_s=150)
        measured.fault("SGLang, two hosts: node 1 stopped as a whole", watcher, paused, words)
        assert words.verdict.nodes == ("node-b",), watcher.history()
        assert not {"crashed", "ended"} & set(watcher.states(after=paused)), watcher.history()
    finally:
        pair.nodes[1].pause(False)
    goes_on = time.time()
    wait_until(watcher, lambda: all(view.heard for view in watcher.snapshot.nodes), 90)
    print(f"FROZEN heard again after {time.time() - goes_on:.1f} s")
    ready = watcher.wait_for("ready", "crashed", after=goes_on, timeout_s=START_S)
    assert ready.state == "ready", f"{watcher.history()}\n{pair.texts()}"


def test_vllm_on_two_hosts(vllm_pair: Pair, tmp_path: Path) -> None:
    """Node 1 late, then ready; then its rank is killed."""
    pair = vllm_pair
    watcher = pair.watch(tmp_path / "vllm.jsonl.gz")
    began = pair.start(0)
    waits = watcher.wait_for("waiting-by-design", "suspect", "stalled", after=began, timeout_s=vllm.START_S)
    measured.fault("vLLM, two hosts: node 1 late", watcher, began, waits)
    late = pair.start(1)
    ready = watcher.wait_for("ready", "crashed", after=late, timeout_s=vllm.START_S)
    assert ready.state == "ready", f"{watcher.history()}\n{pair.texts()}"
    wait_until(watcher, lambda: rank_on(watcher, pair.nodes[1]), 30)
    kill_rank_of_node_1(pair, watcher, "vLLM, two hosts: the rank of node 1 killed")
    time.sleep(6.0)
    last = watcher.snapshot.verdict
    print("VLLM", last.state, last.headline, [fact.text for fact in last.evidence])
    assert "node-b" in last.headline, watcher.history()
