"""What is done to a start: data. ``{last}`` is the last rank, ``{tp}`` the number of GPUs; ``{half}`` of them for DP."""

from __future__ import annotations

from typing import NamedTuple

TESTS = ("--attention-backend", "triton", "--sampling-backend", "pytorch", "--grammar-backend", "none")
#: no custom all-reduce: it wants NVLink multicast or peer access, which a lent machine may not give
SAFE = ("--disable-custom-all-reduce", "--enforce-disable-flashinfer-allreduce-fusion")
NO_GRAPHS = ("--disable-cuda-graph",)


class Fault(NamedTuple):
    """at: a line of the log. who: "last" (rank), or "launcher". do: STOP, KILL. back_s: seconds until it is let go; 0: never."""

    at: str
    who: str
    do: str
    back_s: float = 0.0
    delay_s: float = 0.0


class Scenario(NamedTuple):
    """args: behind the command. limit_s: given up after this. after_s: watched on after the fault, the ready line or the
    end. cold: the page cache is dropped before. sleep: SGMON_SLEEP. hold: (GPU, GiB or "left=GiB") held by another
    process. slow_mb: the disk gives so many MB/s. check: ``sgmon check`` is asked before. one: on one GPU."""

    args: tuple[str, ...] = ()
    limit_s: float = 120.0
    after_s: float = 6.0
    cold: bool = False
    fault: Fault | None = None
    sleep: str = ""
    hold: tuple[int, str] | None = None
    slow_mb: int = 0
    check: bool = False


_CAPTURE, _WARMUP, _READY, _LOADING = (
    "Capturing batches.*: +[1-9]",
    "Uvicorn running|The server is fired up",
    "The server is fired up",
    "shards: +[1-9]",
)
_TP = ("--tp-size", "{tp}", *SAFE)
_LAST = "last"

SGLANG: dict[str, Scenario] = {
    "cold": Scenario(_TP, 300, cold=True),
    "warm": Scenario(_TP, 120),
    "dp2": Scenario(("--tp-size", "{half}", "--dp-size", "2", *SAFE), 150),
    "dp2-kill": Scenario(
        ("--tp-size", "{half}", "--dp-size", "2", *SAFE),
        230,
        fault=Fault(_READY, _LAST, "KILL", delay_s=3),
        after_s=14,
    ),
    "speculative": Scenario((*_TP, "--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "8"), 180),
    "late-capture": Scenario(_TP, 170, sleep="{last},capture,45"),
    "stop-warmup": Scenario(_TP, 150, fault=Fault(_WARMUP, _LAST, "STOP", 20)),
    "kill-warmup": Scenario(_TP, 120, fault=Fault(_WARMUP, _LAST, "KILL")),
    "asleep-warmup": Scenario(_TP, 200, sleep="{last},warmup,45"),
    "stop-capture": Scenario(_TP, 150, fault=Fault(_CAPTURE, _LAST, "STOP", 30)),
    "kill-load": Scenario((*_TP, *NO_GRAPHS), 100, cold=True, fault=Fault(_LOADING, _LAST, "KILL")),
    "kill-launcher": Scenario(_TP, 120, fault=Fault(_CAPTURE, "launcher", "KILL")),
    "held": Scenario((*_TP, *NO_GRAPHS), 90, hold=(-1, "60"), check=True),
    "slow-disk": Scenario((*_TP, *NO_GRAPHS), 150, cold=True, slow_mb=150),
    # one GPU; 15.28 GiB of weights, and 139.13 GiB before the load on an H200
    "too-large-20": Scenario((*NO_GRAPHS, "--mem-fraction-static", "0.0915"), 90, check=True),
    "too-large-2": Scenario((*NO_GRAPHS, "--mem-fraction-static", "0.1077"), 90, check=True),
    "fits-2": Scenario((*NO_GRAPHS, "--mem-fraction-static", "0.1120"), 90, check=True),
    "held-too-large-20": Scenario(
        (*NO_GRAPHS, "--mem-fraction-static", "0.9"), 90, hold=(0, "left=14.90"), check=True
    ),
    "held-too-large-2": Scenario(
        (*NO_GRAPHS, "--mem-fraction-static", "0.9"), 90, hold=(0, "left=17.30"), check=True
    ),
    "held-fits-2": Scenario((*NO_GRAPHS, "--mem-fraction-static", "0.9"), 90, hold=(0, "left=18.00"), check=True),
}

_VTP = ("-tp", "{tp}")
VLLM: dict[str, Scenario] = {
    "cold": Scenario(_VTP, 240, cold=True),
    "warm": Scenario(_VTP, 150),
    "eager": Scenario((*_VTP, "--enforce-eager"), 120),
    "dp2": Scenario(("-tp", "{half}", "-dp", "2", "--enforce-eager"), 140),
    "late-capture": Scenario(_VTP, 260, sleep="{last},capture,45"),
    "stop-collective": Scenario(_VTP, 200, fault=Fault("Capturing.*: +[1-9][0-9]?%", _LAST, "STOP", 30)),
    "kill-load": Scenario(
        (*_VTP, "--enforce-eager"), 100, cold=True, fault=Fault(_LOADING, _LAST, "KILL"), after_s=14
    ),
    # one GPU; 8.28 GiB of weights, 1.17 GiB besides, 139.80 GiB in all on an H200
    "held": Scenario(("--enforce-eager",), 90, hold=(0, "left=120"), check=True),
    "too-large-20": Scenario(("--enforce-eager", "--gpu-memory-utilization", "0.0493"), 90, check=True),
    "too-large-2": Scenario(("--enforce-eager", "--gpu-memory-utilization", "0.0580"), 90, check=True),
    "request-too-long": Scenario(
        ("--enforce-eager", "--gpu-memory-utilization", "0.09", "--max-model-len", "40960"), 90, check=True
    ),
    "fits-2": Scenario(("--enforce-eager", "--gpu-memory-utilization", "0.0772"), 120, check=True),
}
