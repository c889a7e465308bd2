"""Trees of vLLM's processes, in the shapes of real starts: who is who, and which ranks there are."""

from __future__ import annotations

import os
import socket

import pytest
from msgspec.structs import replace

from sgmon.analyse.gpu.rank_mapping import assign, gpu_of
from sgmon.analyse.ranks.make import subjects
from sgmon.analyse.store import Store
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.port import PortProbe
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.discovery import TargetError, find
from sgmon.model import Event, Gpu, GpuProcess, Role
from sgmon.servers.vllm import ranks
from sgmon.settings import Settings
from tests.proc.fake import FakeProc
from tests.proc.test_procs_probe import Clock

PYTHON = "/opt/vllm/venv/bin/python3"
TRACKER = [PYTHON, "-c", "from multiprocessing.resource_tracker import main;main(48)"]
SPAWN = [PYTHON, "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=49, pipe_handle=51)"]
ROOT = 733


class Tree:
    """A fake /proc with a root; ``read`` looks at it once."""

    def __init__(self, tmp_path, *words: str, version: str = "0.22.0") -> None:
        self.fake = FakeProc(tmp_path)
        self.argv = ["python3", "/opt/vllm/bin/vllm", "serve", "m", *words]
        site = tmp_path / "lib/python3.12/site-packages"
        (site / f"vllm-{version}.dist-info").mkdir(parents=True)
        self.fake.add(ROOT, self.argv, environ={"PYTHONPATH": str(site)})
        self.fake.add(ROOT + 1, TRACKER, ppid=ROOT)
        self.watched = Watched(Settings(proc_root=str(self.fake)), Clock())
        self.probe = ProcsProbe(self.watched)

    def add(self, pid: int, argv, ppid: int = ROOT) -> None:
        self.fake.add(pid, argv, ppid=ppid)

    def read(self):
        self.watched.clock.t += 1.0
        self.watched.server = find(self.fake.root, self.watched.settings).server
        return self.probe.read().processes

    def named(self) -> dict[int, tuple[str, str]]:
        """pid -> (role, rank), without the root and the tracker; "?" behind a rank that is inferred."""
        rows = {p.pid: (str(p.role), p.rank + "?" * p.rank_inferred) for p in self.read()}
        return {pid: row for pid, row in rows.items() if pid not in (ROOT, ROOT + 1)}

    def ranks(self) -> list[tuple[int, str]]:
        return [(p.pid, p.rank) for p in subjects(self.read())]


def test_a_start_with_two_workers_stage_by_stage(tmp_path):
    tree = Tree(tmp_path, "-tp", "2")
    assert tree.watched.server is None and tree.read()[0].role is Role.LAUNCHER
    tree.add(841, [PYTHON, "-m", "vllm.model_executor.models.registry"])
    assert tree.named() == {841: ("other", "")}
    tree.fake.remove(841)
    tree.add(948, SPAWN)
    assert tree.named() == {948: ("importing", "")} and tree.ranks() == [(948, "")]
    tree.add(948, "VLLM::EngineCore")
    assert tree.named() == {948: ("engine", "")} and tree.ranks() == [(948, "")]
    tree.add(1054, SPAWN, 948)
    tree.add(1055, SPAWN, 948)
    assert tree.named() == {948: ("engine", ""), 1054: ("importing", "TP0?"), 1055: ("importing", "TP1?")}
    tree.add(1054, "VLLM::Worker", 948)
    tree.add(1055, "VLLM::Worker", 948)
    assert tree.named() == {948: ("engine", ""), 1054: ("worker", "TP0?"), 1055: ("worker", "TP1?")}
    tree.add(1054, "VLLM::Worker_TP1", 948)  # spawned at the same time, so that the order was wrong
    assert tree.named() == {948: ("engine", ""), 1054: ("worker", "TP1"), 1055: ("worker", "TP0?")}
    tree.add(1055, "VLLM::Worker_TP0", 948)
    tree.add(1190, ["/usr/lib/gcc-13/bin/gcc", "-c", "x.c"], 1055)
    assert tree.ranks() == [(1054, "TP1"), (1055, "TP0")]
    assert tree.watched.server.family == "vllm" and tree.watched.server.version == "0.22.0"


def test_a_title_that_is_longer_than_comm_is_still_read_anew(tmp_path):
    tree = Tree(tmp_path, "-tp", "2")
    tree.add(948, "inference-gateway::EngineCore")
    tree.add(1054, "inference-gateway::Worker", 948)
    tree.add(1055, "inference-gateway::Worker", 948)
    assert tree.named()[1055] == ("worker", "TP1?")
    tree.add(1055, "inference-gateway::Worker_TP1", 948)
    assert tree.named()[1055] == ("worker", "TP1")


def test_the_engine_is_the_rank_of_an_only_gpu(tmp_path):
    tree = Tree(tmp_path)
    tree.add(4817, "VLLM::EngineCore")
    tree.add(5078, ["/usr/bin/gcc", "-c", "x.c"], 4817)
    assert tree.named() == {4817: ("worker", "")}
    held = Gpu(0, "H200", processes=(GpuProcess(4817, 7 << 30),))
    (gpu,) = assign((held,), tuple(tree.read()), tree.watched.server)
    assert gpu.ranks == ("",) and not gpu.ranks_inferred


def test_one_worker_on_a_cpu(tmp_path):
    tree = Tree(tmp_path)
    tree.add(5181, "VLLM::EngineCore")
    tree.add(6141, SPAWN, 5181)
    assert tree.named() == {5181: ("engine", ""), 6141: ("importing", "?")}
    tree.add(6141, "VLLM::Worker", 5181)
    assert tree.named() == {5181: ("engine", ""), 6141: ("worker", "")} and tree.ranks() == [(6141, "")]


def test_dense_replicas_have_their_engines_rank(tmp_path):
    """dp 2 on two H200: a coordinator first, API servers last, no DP in the titles of the workers."""
    tree = Tree(tmp_path, "-dp", "2")
    tree.add(3971, SPAWN)
    tree.add(3971, "VLLM::DPCoordinator")
    for pid in (4073, 4074, 4075, 4076):
        tree.add(pid, SPAWN)
    becomes = {p.pid: (str(p.becomes), p.rank) for p in tree.read() if p.role is Role.IMPORTING}
    assert becomes == {
        4073: ("engine", "DP0"),
        4074: ("engine", "DP1"),
        4075: ("api_server", ""),
        4076: ("api_server", ""),
    }
    assert 3971 not in dict(tree.ranks())
    tree.add(4073, "VLLM::EngineCore_DP0")
    tree.add(4074, "VLLM::EngineCore_DP1")
    tree.add(4075, "VLLM::APIServer_0")
    tree.add(4076, "VLLM::APIServer_1")
    tree.add(4481, "VLLM::Worker", 4073)
    tree.add(4484, "VLLM::Worker", 4074)
    assert tree.named() == {
        3971: ("controller", ""),
        4073: ("engine", "DP0"),
        4074: ("engine", "DP1"),
        4075: ("api_server", ""),
        4076: ("api_server", ""),
        4481: ("worker", "DP0"),
        4484: ("worker", "DP1"),
    }
    assert tree.ranks() == [(4481, "DP0"), (4484, "DP1")]


def test_replicas_of_two_ranks(tmp_path):
    tree = Tree(tmp_path, "-dp", "2", "-tp", "2")
    tree.add(900, "VLLM::DPCoordinator")
    tree.add(910, "VLLM::EngineCore_DP0")
    tree.add(920, "VLLM::EngineCore_DP1")
    for pid, title, parent in (
        (930, "VLLM::Worker_TP0", 910),
        (931, "VLLM::Worker_TP1", 910),
        (940, "VLLM::Worker_TP0", 920),
        (941, "VLLM::Worker_DP1_TP1_EP3", 920),
    ):
        tree.add(pid, title, parent)
    assert tree.ranks() == [(930, "DP0 TP0"), (931, "DP0 TP1"), (940, "DP1 TP0"), (941, "DP1 TP1")]


def test_a_headless_node_of_replicas(tmp_path):
    tree = Tree(tmp_path, "--headless", "-dp", "4", "--data-parallel-size-local", "2", "-dpr", "2")
    tree.add(910, SPAWN)
    tree.add(920, SPAWN)
    assert [(p.pid, p.rank, p.becomes) for p in tree.read() if p.role is Role.IMPORTING] == [
        (910, "DP2", Role.ENGINE),
        (920, "DP3", Role.ENGINE),
    ]


def test_a_headless_node_of_a_group_has_workers_below_the_root(tmp_path):
    tree = Tree(tmp_path, "--headless", "-tp", "4", "-n", "2", "-r", "1")
    tree.add(910, SPAWN)
    tree.add(920, SPAWN)
    assert tree.named() == {910: ("importing", "TP2?"), 920: ("importing", "TP3?")}
    tree.add(910, "VLLM::Worker_TP2")
    assert tree.named()[910] == ("worker", "TP2")


def test_several_api_servers(tmp_path):
    tree = Tree(tmp_path, "-asc", "2")
    for pid in (910, 920, 930):
        tree.add(pid, SPAWN)
    assert [str(p.becomes) for p in tree.read() if p.role is Role.IMPORTING] == ["engine", "api_server", "api_server"]


def test_a_supervisor_of_replicas(tmp_path):
    tree = Tree(tmp_path, "-dp", "2", "-dpm")
    tree.add(910, "VLLM::APIServer_DP0")
    tree.add(920, "VLLM::APIServer_DP1")
    tree.add(930, "VLLM::EngineCore_DP0", 910)
    tree.add(940, "VLLM::EngineCore_DP1", 920)
    assert tree.named() == {
        910: ("api_server", ""),
        920: ("api_server", ""),
        930: ("worker", "DP0"),
        940: ("worker", "DP1"),
    }


def test_a_version_without_titles_is_read_by_the_order_of_birth(tmp_path):
    tree = Tree(tmp_path, "-tp", "2", version="0.9.2")
    tree.add(948, SPAWN)
    tree.add(1054, SPAWN, 948)
    tree.add(1055, SPAWN, 948)
    assert tree.named() == {948: ("engine", ""), 1054: ("worker", "TP0?"), 1055: ("worker", "TP1?")}


def test_forks_of_a_version_without_titles(tmp_path):
    """Library default: children look like the launcher. A fork that is about to execute a program does as well."""
    tree = Tree(tmp_path, "-tp", "2", version="0.8.5")
    tree.add(948, tree.argv)
    assert tree.named() == {948: ("other", "")}
    tree.named()
    assert tree.named() == {948: ("engine", "")}
    tree.add(1054, tree.argv, 948)
    tree.add(1055, tree.argv, 948)
    for _ in range(3):
        seen = tree.named()
    assert seen == {948: ("engine", ""), 1054: ("worker", "TP0?"), 1055: ("worker", "TP1?")}
    assert [one.pid for one in find(tree.fake.root, Settings()).candidates] == [ROOT]


def test_rank_0_of_the_old_engine_is_the_engine(tmp_path):
    tree = Tree(tmp_path, "-tp", "2", version="0.7.3")
    tree.add(948, SPAWN)
    tree.add(1054, SPAWN, 948)
    assert tree.named() == {948: ("worker", "TP0?"), 1054: ("worker", "TP1?")}


def test_a_worker_that_ended_keeps_its_name(tmp_path):
    tree = Tree(tmp_path, "-tp", "2")
    tree.add(948, "VLLM::EngineCore")
    tree.add(1054, "VLLM::Worker_TP0", 948)
    tree.add(1055, "VLLM::Worker_TP1", 948)
    tree.read()
    tree.fake.add(1055, [], ppid=948, comm="VLLM::Worker_TP", state="Z")
    (gone,) = [p for p in tree.read() if p.gone]
    assert (gone.pid, gone.rank, gone.role) == (1055, "TP1", Role.WORKER)


def test_orphans_are_named_as_such(tmp_path):
    """Their launcher was killed: they live on, with their GPU memory, below init."""
    fake = FakeProc(tmp_path)
    fake.add(948, "VLLM::EngineCore", ppid=1)
    fake.add(1054, "VLLM::Worker_TP0", ppid=948)
    seen = find(fake.root, Settings())
    assert seen.server is None
    assert [(one.pid, one.title) for one in seen.orphans] == [(948, "VLLM::EngineCore"), (1054, "VLLM::Worker_TP0")]
    with pytest.raises(TargetError, match="is vLLM's, but its launcher is gone"):
        find(fake.root, Settings(pid=1054))


def test_a_script_that_runs_an_engine_is_a_server(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(50, ["/usr/bin/python3", "batch.py"])
    fake.add(948, "VLLM::EngineCore", ppid=50)
    seen = find(fake.root, Settings()).server
    assert seen is not None and (seen.pid, seen.family) == (50, "vllm")


def test_workers_of_ray_are_not_below_the_launcher(tmp_path):
    tree = Tree(tmp_path, "-tp", "2", "--distributed-executor-backend", "ray")
    tree.add(948, "VLLM::EngineCore")
    tree.fake.add(2000, ["/ray/raylet/raylet", "--x"], comm="raylet")
    tree.fake.add(2001, "ray::RayWorkerWrapper", ppid=2000)
    assert [one.pid for one in find(tree.fake.root, Settings()).candidates] == [ROOT]
    assert tree.named() == {948: ("engine", "")}


def test_both_families_on_one_machine(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(100, ["python", "-m", "sglang.launch_server", "--model-path", "a"])
    fake.add(200, ["python", "/bin/vllm", "serve", "b"])
    seen = find(fake.root, Settings())
    assert [(one.pid, one.family, one.port) for one in seen.candidates] == [
        (200, "vllm", 8000),
        (100, "sglang", 30000),
    ]


@pytest.mark.parametrize(
    ("words", "rank", "gpu"),
    [
        ({"tp": 2}, "TP1", 1),
        ({"tp": 2, "pp": 2}, "PP1 TP0", 2),
        ({"dp": 2, "tp": 2}, "DP1 TP1", 3),
        ({"dp": 2}, "DP1", 1),
        ({"tp": 4, "nnodes": 2, "node_rank": 1, "headless": True}, "TP3", 1),
        ({"tp": 2, "device": "cpu"}, "TP1", None),
        ({}, "", 0),
    ],
)
def test_the_gpu_of_a_rank(words, rank, gpu):
    from sgmon.model import ServerArgs

    assert ranks.gpu_of(ServerArgs(**words), rank) == gpu


def test_the_gpu_of_a_worker_whose_holder_is_known(tmp_path):
    tree = Tree(tmp_path, "-tp", "2")
    tree.add(948, "VLLM::EngineCore")
    tree.add(1054, "VLLM::Worker", 948)
    tree.add(1055, "VLLM::Worker", 948)
    processes = tuple(tree.read())
    seen = assign((Gpu(0, "H200", processes=(GpuProcess(1054),)), Gpu(1, "H200")), processes, tree.watched.server)
    assert [(gpu.ranks, gpu.ranks_inferred) for gpu in seen] == [(("TP0",), False), (("TP1",), True)]
    worker = next(p for p in processes if p.pid == 1055)
    assert gpu_of(worker, seen).index == 1


def test_how_many_ready_lines_there_must_be():
    from sgmon.model import ServerArgs

    def count(version="0.32.0", **words):
        return ranks.api_servers(ServerArgs(**words), version)

    assert count() == 1 and count(dp=2) == 2 and count(dp=2, version="0.14.0") == 1
    assert count(api_servers=4) == 4 and count(headless=True) == 0
    assert count(dp=2, raw=(("data_parallel_multi_port_external_lb", "True"),)) == 1
    assert count(dp=4, raw=(("data_parallel_rank", "1"),)) == 1
    assert count(dp=4, raw=(("data_parallel_hybrid_lb", "True"), ("data_parallel_size_local", "2"))) == 2


def test_a_supervisor_has_ports_for_its_replicas_and_itself(tmp_path, listening):
    words = ["--data-parallel-multi-port-external-lb", "-dp", "4", "-dpl", "2", "--host", "127.0.0.1"]
    base = listening.getsockname()[1]
    tree = Tree(tmp_path, *words, "--port", str(base), "--data-parallel-supervisor-port", "9300")
    tree.read()
    server = tree.watched.server
    assert (server.port, server.args.further_ports) == (base, (base + 1, 9300))
    assert find(tree.fake.root, Settings(port=9300)).server.pid == ROOT
    assert find(tree.fake.root, Settings(port=9301)).server is None
    here = replace(server, pid=os.getpid(), start_ticks=1, args=replace(server.args, further_ports=(9300, base)))
    reading = PortProbe(Watched(Settings(probe_http=False), Clock(), here)).read()
    assert f"its other ports: 9300 is not open, {base} listens" in reading.note


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def test_messages_say_which_server_is_which(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(50, ["nginx"])
    fake.add(100, ["python", "-m", "sglang.launch_server", "--model-path", "a"])
    fake.add(200, ["python", "/bin/vllm", "serve", "b"])
    with pytest.raises(TargetError, match=r"is no SGLang or vLLM server") as told:
        find(fake.root, Settings(pid=50))
    assert "pid 200 (vLLM), pid 100 (SGLang)" in told.value.remedy
    seen = find(fake.root, Settings(port=4))
    verdict = Store(0.0).step(Event(0.0, "server", seen)).verdict
    assert "8000 (vLLM, pid 200), 30000 (SGLang, pid 100)" in verdict.headline


def test_a_server_without_a_tcp_port_has_none_that_others_could_hold(tmp_path):
    tree = Tree(tmp_path, "--uds", "/run/v.sock")
    tree.read()
    reading = PortProbe(tree.watched).read()
    assert (reading.answer, reading.listeners, reading.where) == ("skipped", (), "unix:/run/v.sock")
    assert reading.note == "UNIX sockets cannot be read: No such file or directory"
    headless = Tree(tmp_path / "b", "--headless", "-dp", "2")
    headless.read()
    assert PortProbe(headless.watched).read() is None
