"""Workers that Ray starts: no descendants of the launcher, and yet of its server. The trees are those of a real Ray 2.60
(an actor called SchedulerActor that sets SGLang's title, and one called RayWorkerWrapper), with another launcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.discovery import find
from sgmon.model import Role
from sgmon.settings import Settings
from tests.proc.fake import FakeProc

ACTOR = "ray::SchedulerActor.__init__"
SGLANG = ["python", "-m", "sglang.launch_server", "--model-path", "m", "--tp", "2", "--use-ray"]
VLLM = ["python", "/bin/vllm", "serve", "m", "-tp", "2", "--distributed-executor-backend", "ray"]


class Cluster:
    """A raylet with agents and idle workers, and a session folder."""

    def __init__(self, folder: Path, above: int = 1) -> None:
        self.fake = FakeProc(folder)
        self.logs = folder / "session_2026-11-30_08-36-38_969471_18106" / "logs"
        self.logs.mkdir(parents=True)
        self.fake.add(1, ["init"])
        self.fake.add(50, ["/x/ray/core/src/ray/raylet/raylet", "--raylet_socket_name=x"], comm="raylet", ppid=above)
        self.worker(51, "ray::DashboardAgent")
        self.worker(52, "ray::IDLE")

    def worker(self, pid: int, title: str, job: str = "ffffffff") -> None:
        name = self.logs / f"worker-41e125ccc447132224a7283f-{job}-{pid}"
        self.fake.add(pid, title, comm=title[:15], ppid=50, fds={1: f"{name}.out", 2: f"{name}.err"})

    def driver(self, pid: int, argv: list[str] | str, job: str = "01000000", ppid: int = 1) -> None:
        log = self.logs / f"python-core-driver-{job}{'f' * 48}_{pid}.log"
        log.touch()
        self.fake.add(pid, argv, ppid=ppid, fds={15: str(log)})
        if not (self.fake.root / str(pid) / "root").exists():
            (self.fake.root / str(pid) / "root").symlink_to("/")

    def watch(self, pid: int) -> Watch:
        return Watch(self, pid)


class Watch:
    """The probe of one server."""

    def __init__(self, cluster: Cluster, pid: int) -> None:
        settings = Settings(proc_root=str(cluster.fake), pid=pid)
        watched = Watched(settings, Clock())
        watched.server = find(cluster.fake.root, settings).server
        self._probe = ProcsProbe(watched)

    def roles(self) -> dict[int, Role]:
        reading = self._probe.read()
        assert reading is not None
        return {p.pid: p.role for p in reading.processes if not p.gone}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_actors_of_sglang(cluster: Cluster) -> None:
    cluster.driver(100, SGLANG)
    watch = cluster.watch(100)
    assert watch.roles() == {100: Role.LAUNCHER}
    cluster.worker(52, ACTOR)  # it was idle, and seen so, before
    cluster.worker(60, ACTOR, job="01000000")
    cluster.fake.add(61, ["ninja"], ppid=60)
    cluster.fake.add(110, "sglang::detokenizer", ppid=100)
    assert watch.roles() == {100: Role.LAUNCHER, 110: Role.DETOKENIZER, 52: Role.WORKER, 60: Role.WORKER}
    cluster.worker(52, "ray::SchedulerActor")
    cluster.worker(60, "ray::SchedulerActor.run_event_loop", job="01000000")
    assert watch.roles() == {100: Role.LAUNCHER, 110: Role.DETOKENIZER, 52: Role.WORKER, 60: Role.WORKER}


def test_workers_of_vllm_whose_engine_is_the_driver(cluster: Cluster) -> None:
    cluster.fake.add(100, VLLM)
    cluster.driver(101, "VLLM::EngineCore", ppid=100)
    cluster.worker(52, "ray::RayWorkerWrapper")
    cluster.worker(53, "ray::RayWorkerWrapper.execute_method")
    watch = cluster.watch(100)
    assert watch.roles() == {100: Role.LAUNCHER, 101: Role.ENGINE, 52: Role.WORKER, 53: Role.WORKER}
    cluster.fake.remove(53)
    assert set(watch.roles()) == {100, 101, 52}


def test_the_driver_has_started_the_cluster_itself(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, above=40)
    cluster.driver(40, SGLANG)
    cluster.worker(60, ACTOR)
    cluster.fake.add(61, ACTOR, ppid=60)  # a fork
    assert cluster.watch(40).roles() == {
        40: Role.LAUNCHER,
        60: Role.WORKER,
        **dict.fromkeys((50, 51, 52, 61), Role.OTHER),
    }


def test_of_two_servers_in_one_session_the_job_decides(cluster: Cluster) -> None:
    cluster.driver(100, SGLANG)
    cluster.driver(200, SGLANG, job="02000000")
    cluster.worker(60, ACTOR, job="01000000")
    cluster.worker(61, ACTOR, job="02000000")
    cluster.worker(62, ACTOR)  # of which of them it is cannot be told
    assert set(cluster.watch(100).roles()) == {100, 60}
    assert set(cluster.watch(200).roles()) == {200, 61}


def test_another_session_and_a_server_without_ray(cluster: Cluster) -> None:
    cluster.worker(60, ACTOR)
    cluster.fake.add(100, SGLANG, fds={15: f"/y/logs/python-core-driver-01000000{'f' * 48}_100.log"})
    cluster.driver(200, SGLANG[:-1])
    assert set(cluster.watch(100).roles()) == {100}
    assert set(cluster.watch(200).roles()) == {200}
