from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon import demo
from sgmon.analyse.log.fold import LogFold
from sgmon.collect.probes.base import Clock, Watched
from sgmon.model import LogReading
from sgmon.settings import Settings
from tests.logs import runtimes, starts
from tests.logs.runtimes import Container, Dockerd, Runtime
from tests.real.watching import Watcher
from tests.waiting import eventually


class ShiftedClock(Clock):
    """The real clock, which a test can put forward instead of sleeping."""

    shift_s = 0.0

    def now(self) -> float:
        return super().now() + self.shift_s


@pytest.fixture
def clock() -> ShiftedClock:
    return ShiftedClock()


@pytest.fixture
def watch(clock: ShiftedClock):
    def make(server=None, **settings: object) -> Watched:
        return Watched(Settings(**settings), clock, server)

    return make


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is first on PATH: doubles of docker, journalctl and the like are written into it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    yield folder


@pytest.fixture(scope="session")
def bare() -> list[tuple[str, str]]:
    """(milestone, rank) of the same start on the bare host, sorted: two ranks print in any order."""
    with demo.start("healthy", tp=2, speed=starts.SPEED) as server:
        eventually(lambda: "ready to roll" in Path(server.log).read_text())
        text = Path(server.log).read_text()
    fold = LogFold()
    fold.feed(LogReading(path="log", text=text), 0.0)
    return starts.kinds(fold.state().milestones)


@pytest.fixture(scope="session")
def dockerd(tmp_path_factory) -> Iterator[Dockerd]:
    runtimes.need("dockerd", "docker", "runc", "containerd")
    daemon = Dockerd(tmp_path_factory.mktemp("docker"))
    try:
        if why := daemon.until_ready():
            runtimes.skip(why)
        yield daemon
    finally:
        daemon.stop()


@pytest.fixture
def docker(dockerd) -> Iterator[Runtime]:
    yield dockerd.runtime
    dockerd.runtime.clean_up()


@pytest.fixture(scope="session")
def podman_storage() -> Iterator[Runtime]:
    runtimes.need("podman", "conmon", "runc")
    # podman refuses a runroot longer than 50 characters: pytest's own folders are longer when tests run side by side
    with tempfile.TemporaryDirectory(prefix="sgp", dir="/tmp", ignore_cleanup_errors=True) as folder:
        runtime = runtimes.podman(Path(folder))
        if not runtime("info", check=False):
            runtimes.skip("podman info fails")
        yield runtime


@pytest.fixture
def podman(podman_storage) -> Iterator[Runtime]:
    yield podman_storage
    podman_storage.clean_up()


@pytest.fixture
def beside(tmp_path) -> Iterator[object]:
    """Starts a watch of a container's server."""
    watchers: list[Watcher] = []

    def start(container: Container, **settings: object) -> Watcher:
        watchers.append(Watcher(tmp_path / f"{container.name}.jsonl.gz", pid=container.pid, **settings))
        return watchers[-1]

    yield start
    for watcher in watchers:
        watcher.stop()


JOURNALD = "/lib/systemd/systemd-journald"
JOURNAL = Path("/run/systemd/journal/stdout")


@pytest.fixture
def journald() -> Iterator[None]:
    """The one that runs here, else one of our own."""
    runtimes.need("journalctl", "systemd-cat")
    if not Path(JOURNALD).exists():
        runtimes.skip(f"there is no {JOURNALD} (apt-get install systemd)")
    if any(path.read_text() == "systemd-journal\n" for path in Path("/proc").glob("[0-9]*/comm")):
        yield
        return
    for folder in ("/run/systemd/journal", "/run/log/journal"):
        os.makedirs(folder, exist_ok=True)
    JOURNAL.unlink(missing_ok=True)
    daemon = subprocess.Popen([JOURNALD], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + 20
    while not JOURNAL.exists():
        if daemon.poll() is not None or time.monotonic() > end:
            daemon.kill()
            runtimes.skip(f"systemd-journald does not run here: {daemon.communicate()[1].decode()[-300:]}")
        select.select([], [], [], 0.05)
    yield
    daemon.terminate()
    daemon.communicate()
