"""vllm/v1/engine/core.py: drives the workers; without work of its own on a GPU."""

from __future__ import annotations

import queue
import time
from multiprocessing.connection import Connection

import setproctitle

from sgmon.demo.lifeline import die_with_parent
from sgmon.demo.play import Play
from sgmon.demo.played.vllm import logger, wording
from sgmon.demo.played.vllm.v1.executor.multiproc_executor import MultiprocExecutor

_BYTES_A_TOKEN = 47 * 1024


class EngineCore:
    """Ready when its constructor is over."""

    def __init__(self, play: Play) -> None:
        wording.engine(play)
        self.model_executor = MultiprocExecutor(play)
        self._initialize_kv_caches()

    def _initialize_kv_caches(self) -> None:
        began = time.perf_counter()
        free_gib = min(self.model_executor.collective_rpc("determine_available_memory"))
        tokens = int(free_gib * (1 << 30) / _BYTES_A_TOKEN)
        logger.info(
            "kv_cache_utils.py:2327",
            f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for 32,768 tokens per request: "
            f"{tokens / 32768:.2f}x",
        )
        self.model_executor.collective_rpc("initialize_from_config", free_gib)
        self.model_executor.collective_rpc("compile_or_warm_up_model")
        took = time.perf_counter() - began
        logger.info("core.py:402", f"init engine (profile, create kv cache, warmup model) took {took:.2f} s")


class EngineCoreProc(EngineCore):
    """The engine in a process of its own."""

    def __init__(self, play: Play) -> None:
        super().__init__(play)
        self._input_queue: queue.Queue[str] = queue.Queue()

    @staticmethod
    def run_engine_core(play: Play, ready: Connection) -> None:
        setproctitle.setproctitle("VLLM::EngineCore")
        logger.set_name("EngineCore")
        die_with_parent()
        engine = EngineCoreProc(play)
        ready.send("READY")
        engine.run_busy_loop()

    def run_busy_loop(self) -> None:
        while True:
            self._process_input_queue()

    def _process_input_queue(self) -> None:
        self._input_queue.get()
