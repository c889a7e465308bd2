"""Starts and stops a play. The caller holds a pipe to the guard: when it closes, everything is gone."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from sgmon.demo.files import write_play
from sgmon.demo.launch import package_root
from sgmon.demo.play import Play
from sgmon.demo.scenarios import BY_NAME, VERSIONS
from sgmon.servers import registry

_MOST_RANKS = 16


class DemoServer:
    """A running simulated server. A context manager; ``stop`` may be called twice."""

    def __init__(self, play: Play, guard: subprocess.Popen[str], pid: int) -> None:
        self._play, self._guard = play, guard
        self._returncode: int | None = None
        self.pid = pid
        self.scenario = play.name
        self.port = play.port
        self.dist_port = play.dist_port
        self.gate_port = play.gate_port
        self.log = play.log_path
        self.gpus = play.gpus_path
        self.directory = play.directory

    def wait(self) -> int | None:
        """Until the server ends; its exit status (-9: killed), or None when it was stopped by ``stop``."""
        if self._returncode is None and self._guard.stdout is not None:
            word, _, number = self._guard.stdout.readline().partition(" ")
            if word == "exit":
                self._returncode = int(number)
        return self._returncode

    def stop(self) -> None:
        """Kills every process of the play and removes its directory."""
        if self._guard.stdin is not None and not self._guard.stdin.closed:
            self._guard.stdin.close()
        try:
            self._guard.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
        if Path(self.directory).exists():
            self._clean_up_without_guard()

    def _clean_up_without_guard(self) -> None:
        """Somebody has killed the guard; the launcher died with it, perhaps not yet its children."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> DemoServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(
    scenario: str,
    *,
    tp: int | None = None,
    version: str = "",
    speed: float = 1.0,
    port: int = 0,
    directory: str | None = None,
) -> DemoServer:
    """Start a simulated server and return at once. ``directory`` must be new or empty; it is removed at the end.

    version: "" for the newest that is played.
    """
    play = _make_play(scenario, tp, version, speed, port, directory)
    try:
        write_play(play)
        guard = subprocess.Popen(
            [sys.executable, "-m", "sgmon.demo.guard", play.directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=play.directory,  # "-m" puts it first on the path
            text=True,
            env={**os.environ, "PYTHONPATH": package_root()},
            start_new_session=True,
        )
    except OSError:
        shutil.rmtree(play.directory, ignore_errors=True)
        raise
    assert guard.stdout is not None
    word, _, number = guard.stdout.readline().partition(" ")
    if word != "pid":
        guard.kill()
        guard.wait()
        shutil.rmtree(play.directory, ignore_errors=True)
        raise RuntimeError("the simulated server did not start")
    return DemoServer(play, guard, int(number))


def _make_play(name: str, tp: int | None, version: str, speed: float, port: int, directory: str | None) -> Play:
    if not sys.platform.startswith("linux"):
        raise RuntimeError("the simulated server needs Linux: it is watched through /proc")
    if name not in BY_NAME:
        raise ValueError(f"no scenario {name!r}; there are: {', '.join(BY_NAME)}")
    if speed <= 0:
        raise ValueError(f"the speed must be above 0, not {speed:g}")
    scenario = BY_NAME[name]
    versions = VERSIONS[scenario.family]
    if version and version not in versions:
        label = registry.get(scenario.family).label
        raise ValueError(f"the demo plays {label} {' and '.join(versions)}, not {version}")
    ranks = tp or scenario.tp
    least = max(2, (scenario.odd_rank or 0) + 1) * scenario.nnodes
    if ranks % scenario.nnodes or not least <= ranks <= _MOST_RANKS:
        raise ValueError(f"{name} is played with --tp {least} to {_MOST_RANKS}, not {ranks}")
    taken = _free_ports(3)
    return Play(
        name=name,
        version=version or versions[0],
        speed=speed,
        tp=ranks,
        nnodes=scenario.nnodes,
        port=port or taken[0],
        dist_port=taken[1],
        gate_port=taken[2] if name == "gate" else 0,
        directory=_new_directory(directory),
    )


def _new_directory(directory: str | None) -> str:
    if directory is None:
        return tempfile.mkdtemp(prefix="sgmon-demo-")
    path = Path(directory).resolve()
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise ValueError(f"{path} is not empty; the demo removes its directory at the end")
    return str(path)


def _free_ports(count: int) -> list[int]:
    """Held all at once, so that no number comes twice."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
