"""vllm/v1/executor/multiproc_executor.py: the worker processes of an engine, and the calls to all of them."""

from __future__ import annotations

import multiprocessing as mp
import multiprocessing.connection
from multiprocessing.connection import Connection
from typing import Any

import setproctitle

from sgmon.demo.lifeline import die_with_parent
from sgmon.demo.load import be_nice
from sgmon.demo.play import Play
from sgmon.demo.played.vllm import logger
from sgmon.demo.played.vllm.distributed.device_communicators.shm_broadcast import MessageQueue
from sgmon.demo.played.vllm.v1.worker.gpu_worker import Worker


class MultiprocExecutor:
    """Spawns a worker a rank, and waits for all of them without a limit."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._init_executor()

    def _init_executor(self) -> None:
        spawn = mp.get_context("spawn")
        pipes, ready = [], []
        for rank in range(self._play.tp):
            ours, theirs = spawn.Pipe()
            reading, writing = spawn.Pipe(duplex=False)
            spawn.Process(
                target=WorkerProc.worker_main, args=(self._play, rank, theirs, writing), daemon=True
            ).start()
            theirs.close()
            writing.close()
            pipes.append(ours)
            ready.append(reading)
        WorkerProc.wait_for_ready(ready)
        self._queues = [MessageQueue(self._play, pipe) for pipe in pipes]
        for queue in self._queues:
            queue.enqueue("READY")

    def collective_rpc(self, method: str, *args: Any) -> list[Any]:
        for queue in self._queues:
            queue.enqueue((method, args))

        def get_response() -> list[Any]:
            return [queue.dequeue(notice=True) for queue in self._queues]

        return get_response()


class WorkerProc:
    """One rank: loads, then does what its engine calls."""

    def __init__(self, play: Play, rank: int) -> None:
        self.worker = Worker(play, rank)
        self.worker.init_device()
        self.setup_proc_title_and_log_prefix(f"Worker_TP{rank}")
        self.worker.load_model()

    @staticmethod
    def wait_for_ready(pipes: list[Connection]) -> None:
        waiting: list[Any] = list(pipes)
        while waiting:
            for pipe in mp.connection.wait(waiting):
                assert isinstance(pipe, Connection)
                pipe.recv()
                waiting.remove(pipe)

    @staticmethod
    def setup_proc_title_and_log_prefix(name: str) -> None:
        setproctitle.setproctitle(f"VLLM::{name}")
        logger.set_name(name)

    @staticmethod
    def worker_main(play: Play, rank: int, pipe: Connection, ready: Connection) -> None:
        """The title has no rank before the groups are made."""
        WorkerProc.setup_proc_title_and_log_prefix("Worker")
        die_with_parent()
        proc = WorkerProc(play, rank)
        ready.send("READY")
        queue = MessageQueue(play, pipe)
        queue.wait_until_ready()
        be_nice()
        proc.worker_busy_loop(queue)

    def worker_busy_loop(self, queue: MessageQueue) -> None:
        while True:
            method, args = queue.dequeue()
            queue.enqueue(getattr(self.worker, method)(*args))
