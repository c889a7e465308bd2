"""SGLang's diffusion server: found by its own module, or by its workers' titles below ``sglang serve``."""

from __future__ import annotations

import pytest

from sgmon.analyse.store import Store
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.discovery import find
from sgmon.model import Event, LogReading, Role
from sgmon.settings import Settings
from tests.discovery.test_find import SPAWN
from tests.proc.fake import FakeProc
from tests.proc.test_procs_probe import Clock

MODULE = ["/opt/v/bin/python", "-m", "sglang.multimodal_gen.runtime.launch_server", "--model-path", "/models/Wan"]
SERVE = ["/opt/v/bin/python", "/opt/v/bin/sglang", "serve", "/models/Wan"]
SIZES = ["--num-gpus", "2", "--port", "31200"]
LOG = (
    '[01-16 03:43:11] server_args: {"model_path": "/models/Wan", "num_gpus": 2, "port": 31200}\n'
    "[01-16 03:43:12] Starting server...\n"
    "[01-16 03:43:15] Loading transformer from /models/Wan/transformer. avail mem: 74.80 GB\n"
)


@pytest.mark.parametrize("argv", [[*MODULE, *SIZES], [*SERVE, *SIZES]])
def test_the_server_and_its_workers(tmp_path, argv):
    fake = FakeProc(tmp_path)
    fake.add(100, argv)
    watched = Watched(Settings(proc_root=str(fake)), Clock())
    probe = ProcsProbe(watched)

    def look() -> dict[int, tuple[Role, str]]:
        watched.clock.t += 1.0
        watched.server = find(fake.root, watched.settings, watched.server).server
        return {p.pid: (p.role, p.rank) for p in probe.read().processes}

    look()
    fake.add(110, SPAWN, ppid=100)
    fake.add(111, SPAWN, ppid=100)
    assert look()[110][0] is Role.IMPORTING
    fake.add(110, "sgl_diffusion::scheduler_0", ppid=100)
    fake.add(111, "sgl_diffusion::scheduler_1", ppid=100)
    assert look() == {100: (Role.LAUNCHER, ""), 110: (Role.WORKER, "W0"), 111: (Role.WORKER, "W1")}
    server = watched.server
    assert (server.family, server.port, server.args.model_path) == ("sglang-diffusion", 31200, "/models/Wan")
    store = Store(0.0)
    store.step(Event(1.0, "server", find(fake.root, watched.settings)))
    store.step(Event(1.1, "log", LogReading(path="/x.log", text=LOG, size=len(LOG))))
    store.step(Event(1.2, "procs", probe.read()))
    snapshot = store.step(Event(1.3, "tick"))
    assert (snapshot.phase, [rank.name for rank in snapshot.ranks]) == ("weights", ["W0", "W1"])
    assert snapshot.verdict.state != "crashed"


def test_titles_with_sizes_name_the_rank(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(100, [*MODULE, *SIZES])
    fake.add(110, "sgl_diffusion::scheduler_TP0_U1", ppid=100)
    watched = Watched(Settings(proc_root=str(fake)), Clock(), find(fake.root, Settings()).server)
    assert [p.rank for p in ProcsProbe(watched).read().processes if p.role is Role.WORKER] == ["TP0 U1"]


def test_another_model_is_no_diffusion_server(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(100, [*SERVE, "--tp", "2"])
    fake.add(110, "sglang::scheduler_TP0", ppid=100)
    server = find(fake.root, Settings()).server
    assert (server.family, server.args.tp) == ("sglang", 2)
