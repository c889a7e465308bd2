"""The memory plan of a rank against what real starts on H200s took; and what makes a start impossible."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon.analyse.foreseen import Foreseen, start_of
from sgmon.analyse.gpu.taken import taken
from sgmon.collect.preflight import folder
from sgmon.export.json import status_report
from sgmon.foresight.plan import FILES_ERROR, LEARNED_ERROR, plans
from sgmon.foresight.start import RankGpu
from sgmon.history.baseline import summed
from sgmon.history.from_snapshot import start_of as finished
from sgmon.model import Baseline, Snapshot
from sgmon.model.plan import MemoryPlan, MemoryTaken
from sgmon.model.preflight import Installed, Preflight
from sgmon.servers import registry
from tests.diagnosis.replay import replay
from tests.foresight.starts import GIB, only, said, shard, start
from widgets.gpu_page import gpu_lines

DOOM = "will-fail"
#: hidden, intermediate, layers, heads, KV heads, head, vocabulary
SHAPES = {
    "4b": (2560, 9728, 36, 32, 8, 128, 151936),
    "8b": (4096, 12288, 36, 32, 8, 128, 151936),
    "32b": (5120, 25600, 64, 64, 8, 128, 151936),
}
#: recording -> the model that it started, and what its installed files stated
STARTS = {
    "gpu-real-cold": ("8b", ()),
    "gpu-real-warm-mt-debug": ("8b", ()),
    "gpu-dummy32-nograph": ("32b", ()),
    "gpu-port-used": ("8b", ()),
    "gpu-tp2": ("8b", ()),
    "gpu-tp2-stop1": ("8b", ()),
    "gpu-tp2-stop-capture": ("8b", ()),
    "h200x2-live-cold": ("8b", ()),
    "h200x2-live-stop-load": ("8b", ()),
    "vllm-h200-tp1-default": ("4b", ("share-0.92",)),
    "vllm-h200-tp2-default": ("4b", ("share-0.92",)),
    "vllm-h200-tp2-eager": ("4b", ("share-0.92",)),
    "vllm-h200-dp2-eager": ("4b", ("share-0.92",)),
    "vllm-live-h200-cold": ("4b", ("share-0.92",)),
}


def qwen(path: Path, size: str) -> Path:
    """A Qwen3 of that size in one file with holes: its header is real, its weights are zeros."""
    h, inner, layers, heads, kv, head, words = SHAPES[size]
    tensors = {"model.embed_tokens.weight": words * h, "model.norm.weight": h, "lm_head.weight": words * h}
    for n in range(layers):
        at = f"model.layers.{n}."
        tensors |= {
            at + "self_attn.q_proj.weight": heads * head * h,
            at + "self_attn.o_proj.weight": heads * head * h,
        }
        tensors |= {at + f"self_attn.{one}_proj.weight": kv * head * h for one in "kv"}
        tensors |= {at + f"mlp.{one}_proj.weight": inner * h for one in ("gate", "up", "down")}
        tensors |= {
            at + one: width for one, width in (("input_layernorm.weight", h), ("self_attn.q_norm.weight", head))
        }
    path.mkdir(parents=True)
    shard(path / "model.safetensors", {name: ("BF16", 2 * count) for name, count in tensors.items()})
    config = (
        f'{{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": {h}, "head_dim": {head},'
        f'"num_attention_heads": {heads}, "num_key_value_heads": {kv}, "num_hidden_layers": {layers},'
        f'"tie_word_embeddings": false, "sliding_window": null, "max_position_embeddings": 40960}}'
    )
    (path / "config.json").write_text(config)
    (path / "tokenizer.json").write_text("{}")
    return path


@cache
def _ended(name: str) -> Snapshot:
    return replay(name)[1]


def _planned(name: str, path: Path) -> tuple[MemoryPlan, MemoryTaken, Snapshot]:
    """The plan of a recorded start, with its model, and what it took."""
    size, proofs = STARTS[name]
    snapshot = _ended(name)
    facts = Preflight(model=folder.read(str(qwen(path / size, size)), size), installed=Installed(proofs=proofs))
    assert snapshot.server is not None
    args = replace(snapshot.server.args, load_format="auto")  # dummy weights are as large as real ones
    server = replace(snapshot.server, args=args)
    made = start_of(replace(snapshot, server=server, preflight=facts, baseline=None), server)
    made = replace(made, version=made.version or "0.5.17")  # the oldest recordings do not tell it
    took = taken(snapshot)
    assert took is not None
    return plans(made)[0], took, snapshot


@pytest.mark.parametrize("name", STARTS)
def test_estimates_against_real_starts(name: str, tmp_path: Path) -> None:
    plan, took, _ = _planned(name, tmp_path)
    assert plan.weights_bytes and took.weights_bytes and plan.least_bytes
    assert plan.least_bytes <= took.weights_bytes
    whole = took.weights_bytes + (took.kv_bytes or 0)
    assert abs(plan.weights_bytes - took.weights_bytes) <= FILES_ERROR * took.weights_bytes
    assert plan.kv_bytes is not None
    if took.kv_bytes is not None:
        assert abs(plan.kv_bytes - took.kv_bytes) <= FILES_ERROR * whole


def test_a_finished_start_teaches_the_next_one(tmp_path: Path) -> None:
    plan, took, snapshot = _planned("h200x2-live-cold", tmp_path)
    usual = summed([finished(snapshot, "ready")] * 3, "same")
    assert usual.memory == took and usual.memory_count == 3
    assert snapshot.server is not None
    again = plans(start_of(replace(snapshot, baseline=usual), snapshot.server))[0]
    assert (again.learned, again.weights_bytes, again.context_bytes) == (3, took.weights_bytes, took.context_bytes)
    assert again.error == LEARNED_ERROR and plan.learned == 0
    assert abs((again.kv_bytes or 0) - (took.kv_bytes or 0)) <= LEARNED_ERROR * (took.kv_bytes or 0)
    assert Baseline().memory is None


def _h200(free: float, index: int = 0) -> RankGpu:
    total = 143771 * 1024**2
    usable = total - 644939776
    others = usable - round(free * GIB)
    return RankGpu("", index, total, others, f"pid 9 python3 {index}", 9, reserved_bytes=644939776)


#: what SGLang 0.5.17 itself has printed on H200s
@pytest.mark.parametrize(
    ("tp", "graphs", "share"), [(1, True, 0.903), (2, True, 0.902), (1, False, 0.91)], ids=["tp1", "tp2", "no graphs"]
)
def test_the_share_that_the_server_computes(tp: int, graphs: bool, share: float, tmp_path: Path) -> None:
    one = start(qwen(tmp_path / "8b", "8b"), gpus=tuple(_h200(139.8, n) for n in range(tp)), tp=tp)
    one = replace(one, args=replace(one.args, disable_cuda_graph=not graphs))
    plan = plans(one)[0]
    assert (plan.share, plan.share_from) == (share, "formula")
    unread = plans(replace(one, version="0.4.6"))[0]
    assert unread.share is None and unread.kv_bytes is None, "a formula that was not read"


@pytest.mark.parametrize(("fraction", "level"), [(0.0915, DOOM), (0.1077, DOOM), (0.1120, "warning"), (0.16, "ok")])
def test_too_large_by_20_and_by_2_percent_and_fitting_by_2(fraction: float, level: str, tmp_path: Path) -> None:
    """8 B model on an H200: 15.28 GiB of 139.13 GiB, the server's own bound is a share of 0.1098."""
    one = start(qwen(tmp_path / "8b", "8b"), gpus=(_h200(139.8),), raw=(("mem_fraction_static", str(fraction)),))
    assert only(one, "gpu-memory").level.value == level


@pytest.mark.parametrize(
    ("free", "level"), [((139.8, 59.0), DOOM), ((139.8, 125.0), "warning"), ((139.8, 130.0), "ok")]
)
def test_gpus_that_differ(free: tuple[float, float], level: str, tmp_path: Path) -> None:
    gpus = tuple(_h200(one, n) for n, one in enumerate(free))
    facts = Preflight(installed=Installed(proofs=("balanced-memory",)))
    one = start(qwen(tmp_path / "8b", "8b"), facts, gpus=gpus, tp=2)
    assert only(one, "gpu-balance").level.value == level
    off = replace(facts, env=(("SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "0"),))
    told = start(tmp_path / "8b", off, gpus=gpus, tp=2)
    assert only(told, "gpu-balance").level.value == ("ok" if level == "ok" else "warning")
    assert "gpu-balance" not in dict(said(start(tmp_path / "8b", gpus=gpus, tp=2))), "a version that does not check"


def _vllm(path: Path, free: float, proofs: tuple[str, ...] = ("share-0.92",), **raw: str) -> list[tuple[str, str]]:
    facts = Preflight(installed=Installed(architectures=("Qwen3ForCausalLM",), proofs=proofs))
    one = start(path, facts, gpus=(_h200(free),), raw=tuple(raw.items()))
    found = said(replace(one, family=registry.get("vllm"), version="0.22.0"))
    return [pair for pair in found if pair[0] not in ("chat-template",)]


def test_vllm_wants_its_share_of_the_whole_to_be_free(tmp_path: Path) -> None:
    path = qwen(tmp_path / "4b", "4b")
    assert _vllm(path, 139.8) == []
    assert _vllm(path, 120.0) == [("gpu-share", DOOM)], "its default, stated in the installed file"
    assert _vllm(path, 120.0, ()) == [], "a default that is not known"
    assert _vllm(path, 120.0, gpu_memory_utilization="0.8") == []
    assert _vllm(path, 120.0, kv_cache_memory_bytes="1000000000") == [], "a fixed KV cache asks for nothing else"


def test_vllm_wants_room_for_one_request_of_the_greatest_length(tmp_path: Path) -> None:
    path = qwen(tmp_path / "4b", "4b")  # 8.2 GiB, and 5.6 GiB for 40960 tokens
    assert _vllm(path, 139.8, gpu_memory_utilization="0.09") == [("kv-cache", DOOM)]
    assert _vllm(path, 139.8, gpu_memory_utilization="0.105") == [("gpu-memory", "warning")]
    assert _vllm(path, 139.8, gpu_memory_utilization="0.09", max_model_len="4096") == []
    assert _vllm(path, 139.8, gpu_memory_utilization="0.09", max_model_len="auto") == []


def test_the_plan_stands_beside_what_was_taken() -> None:
    """On the GPU's page and in the JSON."""
    snapshot = _ended("h200x2-live-cold")
    page = "\n".join("".join(text for text, *_ in line) for line in gpu_lines(snapshot, 0, 120))
    assert "what a rank was expected to take here, by the headers of the shards" in page
    assert "1,705,800 tokens; share 0.902, as the server computes it" in page
    plan = status_report(snapshot).memory_plans[0]
    assert plan.weights_bytes is not None and plan.taken_weights_bytes is not None
    assert abs(plan.weights_bytes - plan.taken_weights_bytes) < 0.01 * plan.taken_weights_bytes
    assert (plan.share, plan.learned, plan.taken_graph_bytes) == (0.902, 0, round(2.67 * GIB))


def test_a_restart_with_the_same_facts_is_foretold_again() -> None:
    foreseen, ended = Foreseen(), _ended("h200x2-live-cold")
    bare = replace(ended, forecasts=(), memory_plans=())
    first = foreseen.with_forecasts(Snapshot(), bare)
    assert first.forecasts and first.memory_plans
    again = foreseen.with_forecasts(replace(first, server=None), bare)
    assert (again.forecasts, again.memory_plans) == (first.forecasts, first.memory_plans)
    assert bare.server is not None
    other = replace(bare, server=replace(bare.server, args=replace(bare.server.args, device="cpu")))
    assert foreseen.with_forecasts(again, other).memory_plans == ()
