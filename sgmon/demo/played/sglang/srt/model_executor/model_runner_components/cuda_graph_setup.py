"""sglang/srt/model_executor/model_runner_components/cuda_graph_setup.py: capture of prefill and decode graphs.

From 0.5.14 on prefill comes before decode; before that there was decode alone (piecewise graphs were opt-in).
"""

from __future__ import annotations

import time

from sgmon.demo import console
from sgmon.demo.card import Card
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.played.sglang.srt.model_executor.runner.decode_cuda_graph_runner import (
    DECODE_SIZES,
    DecodeCudaGraphRunner,
)
from sgmon.demo.played.sglang.srt.model_executor.runner.prefill_cuda_graph_runner import (
    PREFILL_SIZES,
    PrefillCudaGraphRunner,
)


def capture_cuda_graphs(play: Play, card: Card, group: GroupCoordinator) -> dict[str, float]:
    return {
        "prefill": capture_prefill_graph(play, card, group),
        "decode": capture_decode_graph(play, card, group),
    }


def capture_prefill_graph(play: Play, card: Card, group: GroupCoordinator) -> float:
    began, before = time.perf_counter(), card.free_gib
    console.info(
        f"Capture target prefill CUDA graph begin. backend=breakable, num_tokens={PREFILL_SIZES}, "
        f"avail mem={before:.2f} GB"
    )
    PrefillCudaGraphRunner(play, card, group)
    took = time.perf_counter() - began
    console.info(
        f"Capture target prefill CUDA graph end. elapsed={took:.2f} s, "
        f"mem usage={before - card.free_gib:.2f} GB, avail mem={card.free_gib:.2f} GB."
    )
    return took


def capture_decode_graph(play: Play, card: Card, group: GroupCoordinator) -> float:
    began, before = time.perf_counter(), card.free_gib
    console.info(
        f"Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem={before:.2f} GB"
    )
    DecodeCudaGraphRunner(play, card, group)
    took = time.perf_counter() - began
    console.info(
        f"Capture target decode CUDA graph end. bs={DECODE_SIZES}, elapsed={took:.2f} s, "
        f"mem usage={before - card.free_gib:.2f} GB, avail mem={card.free_gib:.2f} GB."
    )
    return took


def capture_decode_only(play: Play, card: Card, group: GroupCoordinator) -> dict[str, float]:
    """0.5.9: ModelRunner.init_device_graphs."""
    began, before = time.perf_counter(), card.free_gib
    console.info(f"Capture cuda graph begin. This can take up to several minutes. avail mem={before:.2f} GB")
    DecodeCudaGraphRunner(play, card, group)
    if card.rank == 0:
        console.info("Registering 3384 cuda graph addresses")
    took = time.perf_counter() - began
    console.info(
        f"Capture cuda graph end. Time elapsed: {took:.2f} s. "
        f"mem usage={before - card.free_gib:.2f} GB. avail mem={card.free_gib:.2f} GB."
    )
    return {"decode": took}
