"""vllm/v1/worker/gpu_worker.py: one rank and its GPU; the engine calls its methods by name."""

from __future__ import annotations

from sgmon.demo.card import DIST_GIB, Card
from sgmon.demo.play import Play
from sgmon.demo.played.torch.distributed.distributed_c10d import ProcessGroup, all_reduce, init_process_group
from sgmon.demo.played.vllm.logger import info
from sgmon.demo.played.vllm.v1.worker.gpu_model_runner import GPUModelRunner

#: free memory that is left at --gpu-memory-utilization 0.92
_LEFT_GIB = 11.2


class Worker:
    """Made before its groups are."""

    def __init__(self, play: Play, rank: int) -> None:
        self._play, self._rank = play, rank
        self._card = Card(play.board_path, rank)

    def init_device(self) -> None:
        self._card.open_context()
        self._group = init_worker_distributed_environment(self._play, self._rank)
        self._card.hold(DIST_GIB, "idle")
        self._runner = GPUModelRunner(self._play, self._card, self._group)

    def load_model(self) -> None:
        self._runner.load_model()

    def determine_available_memory(self) -> float:
        self._card.mode("work")
        self._runner.profile_run()
        self._card.mode("idle")
        free_gib = self._card.free_gib - _LEFT_GIB
        if self._rank == 0:
            info("gpu_worker.py:466", f"Available KV cache memory: {free_gib:.2f} GiB")
        return free_gib

    def initialize_from_config(self, size_gib: float) -> None:
        self._play.pause(0.3)
        self._card.grow(size_gib)

    def compile_or_warm_up_model(self) -> None:
        kernel_warmup(self._play)
        self._runner.capture_model()

    def execute_model(self) -> None:
        all_reduce(self._group)


def init_worker_distributed_environment(play: Play, rank: int) -> ProcessGroup:
    info(
        "parallel_state.py:1906",
        f"world_size={play.tp} rank={rank} local_rank={rank} "
        f"distributed_init_method=tcp://127.0.0.1:{play.dist_port} backend=nccl",
    )
    group = init_process_group(play, rank)
    play.pause(0.6)
    if rank == 0:
        info("pynccl.py:113", "vLLM is using nccl==2.28.9")
        info(
            "parallel_state.py:2350",
            f"rank 0 in world size {play.tp} is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank 0, "
            "ETP rank 0, EP rank N/A, EPLB rank N/A",
        )
    return group


def kernel_warmup(play: Play) -> None:
    play.pause(0.5)
