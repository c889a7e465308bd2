"""vllm/v1/worker/gpu_model_runner.py: the model of one rank, its trial runs and its graphs."""

from __future__ import annotations

import time

from sgmon.demo.bar import Bar
from sgmon.demo.card import Card
from sgmon.demo.play import Play
from sgmon.demo.played.torch._dynamo.convert_frame import compile_frame
from sgmon.demo.played.torch._inductor.graph import compile_to_module
from sgmon.demo.played.torch.distributed.distributed_c10d import ProcessGroup, all_reduce
from sgmon.demo.played.vllm.logger import info
from sgmon.demo.played.vllm.model_executor.model_loader.default_loader import DefaultModelLoader

_GRAPHS = 51
_GRAPHS_GIB = 0.62


class GPUModelRunner:
    """What a worker's calls end in."""

    def __init__(self, play: Play, card: Card, group: ProcessGroup) -> None:
        self._play, self._card, self._group = play, card, group

    def load_model(self) -> None:
        began = time.perf_counter()
        info("gpu_model_runner.py:5041", f"Starting to load model {self._play.model_path}...")
        DefaultModelLoader(self._play, self._card).load_model()
        self._card.mode("idle")
        took = time.perf_counter() - began
        info(
            "gpu_model_runner.py:5139",
            f"Model loading took {self._play.scenario.weight_gib:.2f} GiB and {took:.6f} seconds",
        )

    def profile_run(self) -> None:
        self._dummy_run()

    def _dummy_run(self) -> None:
        """The first run compiles: Dynamo on one core, then inductor."""
        first = self._card.rank == 0
        dynamo_s, inductor_s = 4.0, 6.0
        compile_frame(dynamo_s / self._play.speed)
        if first:
            cache = f"{self._play.directory}/cache/torch_compile_cache/4a701c6881/rank_0_0/backbone"
            info("backends.py:1089", f"Using cache directory: {cache} for vLLM's torch.compile")
            info("backends.py:1148", f"Dynamo bytecode transform time: {dynamo_s / self._play.speed:.2f} s")
        compile_to_module(inductor_s / self._play.speed)
        if first:
            info(
                "backends.py:393",
                f"Compiling a graph for compile range (1, 8192) takes {inductor_s / self._play.speed:.2f} s",
            )
            info("monitor.py:53", f"torch.compile took {(dynamo_s + inductor_s) / self._play.speed:.2f} s in total")
        all_reduce(self._group)
        if first:
            info("monitor.py:81", "Initial profiling/warmup run took 0.74 s")

    def capture_model(self) -> None:
        began = time.perf_counter()
        self._card.mode("work")
        for kind in ("mixed prefill-decode, PIECEWISE", "decode, FULL"):
            self._capture_cudagraphs(kind)
        self._card.grow(_GRAPHS_GIB)
        all_reduce(self._group)
        self._card.mode("idle")
        took = time.perf_counter() - began
        info("gpu_model_runner.py:6572", f"Graph capturing finished in {took:.0f} secs, took {_GRAPHS_GIB} GiB")

    def _capture_cudagraphs(self, kind: str) -> None:
        bar = Bar(_GRAPHS, f"Capturing CUDA graphs ({kind})") if self._card.rank == 0 else None
        for _ in range(_GRAPHS):
            self._play.pause(3.0 / _GRAPHS)
            if bar:
                bar.update()
        if bar:
            bar.close()
