"""sglang/srt/entrypoints/engine.py: births of the children, and the wait until all ranks are ready.

From 0.5.10 on the main process polls every 5 s and looks for dead ranks; before that it blocks in recv(), rank
by rank, and a rank killed in the middle is never noticed.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any

from sgmon.demo import console, tracebacks
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.managers.detokenizer_manager import run_detokenizer_process
from sgmon.demo.played.sglang.srt.managers.scheduler import run_scheduler_process
from sgmon.demo.wording import startup_timings


class SchedulerDiedError(Exception):
    """A rank died while it loaded; its text is the traceback that the log is to show."""


class Engine:
    """The processes of one server."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._began = time.perf_counter()
        self.procs: list[SpawnProcess] = []
        self.pipes: list[Connection] = []

    def _launch_subprocesses(self) -> list[dict[str, Any]]:
        self._catch_sigquit()
        self._launch_scheduler_processes()
        detokenizer = mp.get_context("spawn").Process(target=run_detokenizer_process, args=(self._play,))
        detokenizer.start()
        self.procs.append(detokenizer)
        self._play.pause(0.5)
        console.info("Using default HuggingFace chat template with detected content format: string")
        infos = self.wait_for_ready()
        if self._play.release() >= (0, 5, 18):
            console.info(startup_timings(infos, time.perf_counter() - self._began))
        return infos

    def _launch_scheduler_processes(self) -> None:
        spawn = mp.get_context("spawn")
        for rank in range(self._play.local_ranks):
            ours, theirs = spawn.Pipe()
            proc = spawn.Process(target=run_scheduler_process, args=(self._play, rank, theirs))
            proc.start()
            theirs.close()
            self.procs.append(proc)
            self.pipes.append(ours)

    def wait_for_ready(self) -> list[dict[str, Any]]:
        if self._play.polls_children:
            return _wait_for_scheduler_ready(self._play, self.pipes, self.procs[:-1])
        return [self._receive(rank, pipe) for rank, pipe in enumerate(self.pipes)]

    def _receive(self, rank: int, pipe: Connection) -> dict[str, Any]:
        """Up to 0.5.9."""
        try:
            info: dict[str, Any] = pipe.recv()
        except EOFError:
            console.info(f"Rank {rank} scheduler is dead. Please check if there are relevant logs.")
            self.procs[rank].join()
            console.info(f"Exit code: {self.procs[rank].exitcode}")
            raise SchedulerDiedError("EOFError\n") from None
        return info

    def _catch_sigquit(self) -> None:
        def handler(_signum: int, _frame: FrameType | None) -> None:
            console.info("Received sigquit from a child process. It usually means the child failed.")
            kill_process_tree(self._play, include_parent=True)

        signal.signal(signal.SIGQUIT, handler)


def _wait_for_scheduler_ready(play: Play, pipes: list[Connection], procs: list[SpawnProcess]) -> list[dict[str, Any]]:
    infos = []
    for rank, pipe in enumerate(pipes):
        while not pipe.poll(timeout=5.0 / play.speed):
            for other, proc in enumerate(procs):
                if not proc.is_alive():
                    raise _scheduler_died_error(play, other, proc)
        try:
            infos.append(pipe.recv())
        except EOFError:
            raise _scheduler_died_error(play, rank, procs[rank]) from None
    return infos


def _scheduler_died_error(play: Play, rank: int, proc: SpawnProcess) -> SchedulerDiedError:
    proc.join(timeout=10)
    return SchedulerDiedError(tracebacks.scheduler_died(play, rank, proc.exitcode))


def kill_process_tree(play: Play, *, include_parent: bool) -> None:
    """After a rank's failure SGLang kills itself too: its exit status is 137, whatever the cause was."""
    pid = os.getpid()
    if play.release() >= (0, 5, 14):
        console.info(f"kill_process_tree called: parent_pid={pid}, {include_parent=}, pid={pid}")
    for child in mp.active_children():
        child.kill()
    if include_parent:
        os.kill(pid, signal.SIGKILL)
