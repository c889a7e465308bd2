"""sglang/srt/managers/scheduler.py: one process a rank, from its title to its event loop."""

from __future__ import annotations

import os
import signal
import traceback
from multiprocessing.connection import Connection

import setproctitle

from sgmon.demo import console, faults
from sgmon.demo.card import Card
from sgmon.demo.lifeline import die_with_parent
from sgmon.demo.load import be_nice
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.bootstrap import init_parallel_runtime
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.sglang.srt.managers.load_snapshot import ShmLoadSnapshotWriter
from sgmon.demo.played.sglang.srt.managers.scheduler_components.request_receiver import SchedulerRequestReceiver
from sgmon.demo.played.sglang.srt.managers.tp_worker import TpModelWorker
from sgmon.demo.wording import child_warnings, prefill_batch, scheduler_summary


class Scheduler:
    """A rank: everything up to "ready" happens in its constructor."""

    def __init__(self, play: Play, rank: int, pipe: Connection) -> None:
        self._play, self._rank, self._pipe = play, rank, pipe
        self._card = Card(play.board_path, rank)
        self._group: GroupCoordinator | None = None
        if play.parallel_init:
            self._group = init_parallel_runtime(play, self._card)
        self.init_tokenizer()
        self.init_model_worker()

    def init_tokenizer(self) -> None:
        self._play.pause(0.2)

    def init_model_worker(self) -> None:
        self.init_tp_model_worker()
        if self._play.release() >= (0, 5, 14):
            self.init_memory_pools()
            self.init_all_cuda_graphs()
        if self._rank == 0:
            console.info(scheduler_summary(self.runner.tokens, self._card.free_gib))
        if self._play.release() >= (0, 5, 14):
            console.info(
                "Tree cache initialized: source=default impl=RadixCache hybrid_swa=False "
                "hybrid_ssm=False hicache_attached=False"
            )

    def init_tp_model_worker(self) -> None:
        self._tp_worker = TpModelWorker(self._play, self._card, self._group)
        self.runner = self._tp_worker.model_runner

    def init_memory_pools(self) -> None:
        self.init_target_memory_pool()

    def init_target_memory_pool(self) -> None:
        self._tp_worker.alloc_memory_pool()

    def init_all_cuda_graphs(self) -> None:
        self._tp_worker.init_cuda_graphs()

    def get_init_info(self) -> dict[str, object]:
        return {"status": "ready", "timings": self.runner.timings}

    def run_event_loop(self) -> None:
        be_nice()
        self._receiver = SchedulerRequestReceiver(self.runner.group.group, self._pipe)
        self.event_loop_overlap()

    def event_loop_overlap(self) -> None:
        self.on_idle()
        while True:
            requests = self.ingest_requests()
            if requests:
                self.run_batch(requests[0])

    def ingest_requests(self) -> list[str]:
        return self._receiver.recv_requests()

    def run_batch(self, request: str) -> None:
        """The forward pass of a request, then its first token back to the main process."""
        self._card.mode("work")
        self._play.pause(0.3)
        self.runner.group.all_reduce()
        self._card.mode("idle")
        if self._rank == 0:
            console.info(prefill_batch(self._play))
            self._pipe.send("token")

    def on_idle(self) -> None:
        """``warmup-stuck``: this rank never gets to hear of the warm-up request."""
        if self._play.name == "warmup-stuck" and self._play.odd(self._rank):
            self.publish_load_snapshot()

    def publish_load_snapshot(self) -> None:
        ShmLoadSnapshotWriter().write()


def configure_scheduler_process(play: Play, rank: int) -> None:
    """Title, log prefix, and the order to die with the main process."""
    console.raw(child_warnings(play))
    prefix = f" TP{rank}"
    setproctitle.setproctitle(f"sglang::scheduler{prefix.replace(' ', '_')}")
    console.set_prefix(prefix)
    die_with_parent()


def run_scheduler_process(play: Play, rank: int, pipe: Connection) -> None:
    configure_scheduler_process(play, rank)
    parent = os.getppid()
    try:
        scheduler = Scheduler(play, rank, pipe)
        pipe.send(scheduler.get_init_info())
        scheduler.run_event_loop()
    except faults.PlayedFailureError as failure:
        _report(str(failure), parent)
    except Exception:  # noqa: BLE001 - so does SGLang: whatever it is, it goes to the log and to the parent
        _report(traceback.format_exc(), parent)


def _report(text: str, parent: int) -> None:
    console.info(f"Scheduler hit an exception: {text}")
    os.kill(parent, signal.SIGQUIT)
