"""A real dockerd and a real podman for the tests, with an image of a few links: /usr and Python are mounted into it.

Both need root and an own place for their data. ``SGMON_NEED_CONTAINERS=1`` makes a missing runtime a failure.
"""

from __future__ import annotations

import io
import json
import os
import select
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0
IMAGE = "sgmon-test"


class Runtime:
    """docker or podman on the command line. Containers get numbered names and are removed at the end."""

    def __init__(self, argv: list[str], run: list[str], image: str) -> None:
        self.argv = argv
        self._run = run
        self._image = image
        self._names: list[str] = []

    def __call__(self, *words: str, check: bool = True) -> str:
        done = subprocess.run([*self.argv, *words], capture_output=True, text=True, timeout=120, check=False)
        assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    def start(self, *command: str, options: tuple[str, ...] = (), network: str = "host") -> Container:
        name = f"sgmon-{os.getpid()}-{len(self._names)}"
        self._names.append(name)
        network_words = ["--network", network]
        words = ["run", "-d", "--name", name, *self._run, *network_words, *mounted(), *options]
        self(*words, self._image, sys.executable, *command)
        return Container(self, name)

    def clean_up(self) -> None:
        if self._names:
            self("rm", "-f", *self._names, check=False)
        self._names = []


class Container:
    """One running container."""

    def __init__(self, runtime: Runtime, name: str) -> None:
        self.runtime = runtime
        self.name = name
        self.id = runtime("inspect", "-f", "{{.Id}}", name)
        self.pid = int(runtime("inspect", "-f", "{{.State.Pid}}", name))

    def __call__(self, verb: str, *words: str) -> str:
        """``container("pause")``"""
        return self.runtime(verb, *words, self.name)

    def sgmon(self, *words: str) -> dict[str, object]:
        """sgmon inside of the container, its JSON."""
        argv = [*self.runtime.argv, "exec", self.name, sys.executable, "-m", "tui_app.cli", *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
        assert done.stdout, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def output(self) -> str:
        """All that it printed."""
        argv = [*self.runtime.argv, "logs", self.name]
        return subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
        ).stdout


def mounted() -> list[str]:
    """What Python and the tests need, read only."""
    places = [Path("/usr"), Path(sys.base_prefix), Path(sys.prefix), ROOT]
    outer = [p for p in dict.fromkeys(places) if not any(q in p.parents for q in places)]
    environment = ["-e", f"PYTHONPATH={ROOT}", "-e", "PYTHONDONTWRITEBYTECODE=1"]
    return [word for place in outer for word in ("-v", f"{place}:{place}:ro")] + environment


def skip(why: str) -> None:
    """Skip; in CI, where the runtimes are installed for these tests, fail."""
    if os.environ.get("SGMON_NEED_CONTAINERS"):
        pytest.fail(f"SGMON_NEED_CONTAINERS is set, and: {why}")
    pytest.skip(why)


def need(*programs: str) -> None:
    """Skip without root, or without one of these programs."""
    if os.geteuid() != 0:
        skip("containers in tests need root")
    absent = [name for name in programs if shutil.which(name) is None]
    if absent:
        skip(f"not installed: {', '.join(absent)} (apt-get install docker.io podman runc)")


def root_tar() -> bytes:
    """A root file system: empty folders, and the links that lead into /usr."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in ("dev", "proc", "sys", "tmp", "run", "etc", "root", "usr"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name in ("bin", "sbin", "lib", "lib64"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(entry)
    return file.getvalue()


class Dockerd:
    """A docker daemon of our own: its data, its socket and its containers lie in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = f"unix://{folder}/docker.sock"
        self.root = folder / "root"
        self._log = (folder / "dockerd.log").open("wb")
        self._daemon = subprocess.Popen(
            ["dockerd", "--storage-driver", "vfs", "--iptables=false", "--bridge=none", "--data-root", str(self.root),
             "--exec-root", str(folder / "exec"), "--pidfile", str(folder / "pid"), "-H", self.socket],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        self.runtime = Runtime(["docker", "--host", self.socket], [], IMAGE)

    def until_ready(self) -> str:
        """ "" when it answers, else why it does not."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self._daemon.poll() is not None:
                return f"dockerd ended: {self._last_words()}"
            if self.runtime("version", "-f", "{{.Server.Version}}", check=False):
                subprocess.run(
                    [*self.runtime.argv, "import", "-", IMAGE], input=root_tar(), capture_output=True, check=True
                )
                return ""
            select.select([], [], [], 0.2)
        return f"dockerd does not answer: {self._last_words()}"

    def _last_words(self) -> str:
        lines = (self.folder / "dockerd.log").read_text("utf-8", "replace").strip().splitlines()
        return lines[-1][-300:] if lines else ""

    def stop(self) -> None:
        self.runtime.clean_up()
        self._daemon.terminate()
        try:
            self._daemon.wait(30)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()
        self._log.close()
        for line in Path("/proc/self/mounts").read_text().splitlines():  # of network namespaces
            place = line.split()[1]
            if place.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "-l", place], capture_output=True, check=False)


def podman(folder: Path) -> Runtime:
    """podman with its own storage; each container runs on an overlay of one root folder."""
    root = folder / "rootfs"
    root.mkdir()
    with tarfile.open(fileobj=io.BytesIO(root_tar())) as tar:
        tar.extractall(root)
    argv = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--tmpdir", f"{folder}/tmp"]
    argv += [
        "--runtime",
        "runc",
        "--storage-driver",
        "vfs",
        "--cgroup-manager",
        "cgroupfs",
        "--events-backend",
        "file",
    ]
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4000:4000", "--rootfs"]
    return Runtime(argv, limits, f"{root}:O")
