"""The process between the starter and the server: drives the GPUs, sends the scenario's signal, cleans up.

``python -m sgmon.demo.guard DIRECTORY``. Its standard input is a pipe from the starter. When that ends, however
the starter ended (SIGKILL too), the guard kills the server's whole session and removes the directory. It is the
server's parent, so it reports pid and exit status, one line each, on its standard output.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from sgmon.demo import gpus
from sgmon.demo.blackboard import Blackboard
from sgmon.demo.launch import launcher_command, launcher_environment
from sgmon.demo.play import Play

_PR_SET_PDEATHSIG = 1
_STOPPERS = {"stopped": signal.SIGSTOP, "killed": signal.SIGKILL}


class Guard:
    """One play from its first process to its last file."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._board = Blackboard(play.board_path)
        self._children: list[subprocess.Popen[bytes]] = []
        self._exit_told = False

    def run(self) -> None:
        play = self._play
        if play.name == "port-taken":
            command = [sys.executable, "-m", "sgmon.demo.stranger", str(play.port)]
            self._start(command, sys.stderr.fileno(), dict(os.environ))
        log = os.open(play.log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._server = self._start(launcher_command(play), log, launcher_environment(play))
        os.close(log)
        _tell(f"pid {self._server.pid}")
        beat_s = max(0.1, 0.5 / play.speed)
        while not _starter_gone(beat_s):
            self._act()
            gpus.write(play.gpus_path, gpus.readings(self._board, play.local_ranks))
            self._tell_exit()

    def _start(self, command: list[str], output: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """A session of its own, so that it can be killed as a whole; and it dies with this process."""
        libc = ctypes.CDLL(None)

        def die_with_guard() -> None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=self._play.directory,
            env=environment,
            start_new_session=True,
            preexec_fn=die_with_guard,
        )
        self._children.append(child)
        return child

    def _act(self) -> None:
        """``stopped`` and ``killed``: half way through the load."""
        rank, signum = self._play.scenario.odd_rank, _STOPPERS.get(self._play.name)
        if rank is None or signum is None:
            return
        slot = self._board.read(rank)
        if slot.acted or slot.shards < self._play.scenario.shards // 2:
            return
        try:
            os.kill(slot.pid, signum)
        except ProcessLookupError:
            return
        self._board.mark_acted(rank)

    def _tell_exit(self) -> None:
        status = self._server.poll()
        if status is not None and not self._exit_told:
            self._exit_told = True
            _tell(f"exit {status}")

    def clean_up(self) -> None:
        for child in self._children:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for child in self._children:
            child.wait()
        _remove(self._play.directory)


def _remove(directory: str) -> None:
    """The last writers may still be dying: try again for a moment."""
    for _ in range(50):
        shutil.rmtree(directory, ignore_errors=True)
        if not Path(directory).exists():
            return
        time.sleep(0.02)


def _starter_gone(timeout_s: float) -> bool:
    ready, _, _ = select.select([0], [], [], timeout_s)
    return bool(ready) and os.read(0, 1) == b""


def _tell(line: str) -> None:
    try:
        os.write(1, f"{line}\n".encode())
    except BrokenPipeError:
        pass  # the starter is gone: the main loop will see it


def _end(_signum: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def main(directory: str) -> None:
    assert threading.active_count() == 1
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guard = Guard(Play.read(Path(directory) / "play.json"))
    try:
        guard.run()
    finally:
        guard.clean_up()


if __name__ == "__main__":
    main(sys.argv[1])
