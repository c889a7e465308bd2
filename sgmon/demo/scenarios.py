"""The scenarios of the simulated server: what each shows, and its size."""

from __future__ import annotations

from msgspec import Struct


class Scenario(Struct, frozen=True):
    """One fault to play. ``odd_rank`` is the rank that it hits; durations are seconds at speed 1."""

    name: str
    text: str
    family: str = "sglang"
    tp: int = 4
    nnodes: int = 1
    odd_rank: int | None = None
    shards: int = 24
    load_s: float = 9.0
    shard_bytes: int = 2 << 20
    model: str = "Qwen3-235B-A22B-FP8"
    model_type: str = "Qwen3MoeForCausalLM"
    weight_gib: float = 55.1
    #: extra "Ignore import error" models that each rank names before it loads
    noise: int = 4


_ALL = (
    Scenario("healthy", "a start that goes well: ready in about half a minute"),
    Scenario(
        "slow-disk",
        "weights trickle in: slow, but the bytes keep moving",
        shards=24,
        load_s=420.0,
        shard_bytes=4 << 20,
    ),
    Scenario(
        "stuck-rank",
        "TP8 goes silent after 100% Completed | 64/64: TP5 never reaches the barrier of the others",
        tp=8,
        odd_rank=5,
        shards=64,
        load_s=12.0,
        shard_bytes=1 << 20,
        model="DeepSeek-V4-FP8",
        model_type="DeepseekV4ForCausalLM",
        weight_gib=73.4,
        noise=17,
    ),
    Scenario("missing-peer", "node 0 of 2 waits for a node that never comes", tp=8, nnodes=2),
    Scenario(
        "compiling",
        "the first captured shape is silent while TP0's compilers work and the others wait for its lock",
        odd_rank=0,
    ),
    Scenario("crash", "TP2 raises an exception in the load; SGLang ends with 137", odd_rank=2),
    Scenario("oom", "the KV cache does not fit: torch.OutOfMemoryError, then 137", odd_rank=0),
    Scenario("port-taken", "another HTTP server holds the port; found only after the whole load"),
    Scenario("stopped", "TP1 gets SIGSTOP in the load; the others wait for it", odd_rank=1),
    Scenario("killed", "TP1 gets SIGKILL in the load; the launcher notices and ends with 1", odd_rank=1),
    Scenario(
        "nccl-hang",
        "graph capture: TP3 never enters the collective, the others spin on the GPU",
        odd_rank=3,
    ),
    Scenario("warmup-stuck", "open port, but /health says 503: TP1 never hears of the warm-up request", odd_rank=1),
    Scenario("gate", "--gated-launch-port: the ranks wait by design until somebody activates them"),
    Scenario("vllm", "a vLLM start that goes well, torch.compile and graphs included", family="vllm"),
    Scenario(
        "vllm-stuck-rank",
        "vLLM goes silent after the bar is at 100 %: TP2 never ends its load, which vLLM sets no limit to",
        family="vllm",
        odd_rank=2,
    ),
)

#: versions that are played, the default first
VERSIONS: dict[str, tuple[str, ...]] = {"sglang": ("0.5.23", "0.5.9"), "vllm": ("0.32.0",)}

BY_NAME: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}

#: name -> one line, for ``sgmon demo --list``
SCENARIOS: dict[str, str] = {scenario.name: scenario.text for scenario in _ALL}
