"""Each rule on the shape that it is for, and on the nearest one that is fine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon.collect.preflight import folder
from sgmon.foresight import memory
from sgmon.foresight.check import forecast
from sgmon.foresight.start import RankGpu
from sgmon.model import Listener
from sgmon.model.preflight import Installed, Level, Limits, ModelFolder, Place, Preflight, Resolved, Space
from tests.foresight.starts import GIB, INSTALLED, model, only, said, start

DOOM = Level.WILL_FAIL.value


def test_a_whole_model_is_fine(tmp_path: Path) -> None:
    assert said(start(model(tmp_path / "m"), tp=2)) == []


def test_an_absolute_path_that_is_not_there(tmp_path: Path) -> None:
    one = start(None, Preflight(model=ModelFolder("/models/none", place=Place.ABSENT)))
    assert said(one) == [("model-path", DOOM)]
    assert "no name of a model on the hub" in only(one, "model-path").why


@pytest.mark.parametrize(("offline", "rule"), [("1", ("model-offline", DOOM)), ("", ("model-download", "warning"))])
def test_a_name_that_is_not_in_the_cache(offline: str, rule: tuple[str, str]) -> None:
    facts = Preflight(model=ModelFolder("org/name", place=Place.HUB), env=(("HF_HUB_OFFLINE", offline),))
    assert said(start(None, facts)) == [rule]


def test_a_mount_that_hangs_is_a_doubt() -> None:
    facts = Preflight(model=ModelFolder("/nfs/m", place=Place.HUNG, fstype="nfs4"))
    assert said(start(None, facts)) == [("model-hung", "warning")]


def test_a_config_that_python_reads_is_fine(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    (path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "limit": Infinity}')
    assert said(start(path)) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"architectures": ['])
def test_a_broken_config(tmp_path: Path, text: str) -> None:
    path = model(tmp_path / "m")
    (path / "config.json").write_text(text)
    assert ("config", DOOM) in said(start(path))


def test_no_config_at_all(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    (path / "config.json").unlink()
    assert ("config", DOOM) in said(start(path))
    (path / "params.json").write_text("{}")  # Mistral's own format
    assert ("config", DOOM) not in said(start(path))


def test_a_missing_shard(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    (path / "model-00002-of-00002.safetensors").unlink()
    one = start(path)
    assert said(one) == [("shard-missing", DOOM)]
    assert "model-00002-of-00002.safetensors" in only(one, "shard-missing").text
    older = replace(one, facts=replace(one.facts, installed=replace(INSTALLED, proofs=())))
    assert said(older) == [("shard-missing", "warning")], "a version that does not look may start all the same"
    cached = replace(one, facts=replace(one.facts, model=replace(one.facts.model, from_cache=True)))  # type: ignore[type-var]
    assert said(cached) == [("shard-missing", "warning")], "what the cache lacks is fetched"
    assert said(replace(one, args=replace(one.args, load_format="dummy"))) == []


@pytest.mark.parametrize("length", [0, 5, 60, 1000])
def test_a_cut_shard(tmp_path: Path, length: int) -> None:
    path = model(tmp_path / "m")
    os.truncate(path / "model-00001-of-00002.safetensors", length)
    one = start(path)
    assert said(one) == [("shard-cut", DOOM)]
    assert "model-00001-of-00002.safetensors is" in only(one, "shard-cut").text


def test_a_cut_file_that_the_index_does_not_name_is_not_read(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    (path / "consolidated.safetensors").write_bytes(b"12345")
    assert said(start(path)) == []


def test_a_file_that_is_no_safetensors(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    (path / "model-00001-of-00002.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n" * 4)
    assert said(start(path)) == [("shard-cut", DOOM)]


def test_a_broken_index(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    (path / folder.INDEX).write_text('{"weight_map": ')
    assert said(start(path)) == [("index", DOOM)]


def test_a_folder_without_weights(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    for name in path.glob("model*"):
        name.unlink()
    assert said(start(path)) == [("no-weights", DOOM)]


def test_no_tokenizer(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    (path / "tokenizer.json").unlink()
    assert said(start(path)) == [("tokenizer", DOOM)]
    assert said(start(path, raw=(("skip_tokenizer_init", "True"),))) == []
    (path / "qwen.tiktoken").write_text("")
    assert said(start(path)) == []
    (path / "qwen.tiktoken").unlink()
    (path / "modeling_own.py").write_text("")
    assert said(start(path)) == [("tokenizer", DOOM)]
    (path / "config.json").write_text('{"model_type": "byt5"}')
    assert said(start(path)) == [("tokenizer", "warning")]


def test_heads_that_cannot_be_divided(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    one = start(path, tp=3)
    assert said(one) == [("heads", DOOM)]
    assert "llama.py of the installed version says: assert self.total_num_heads" in only(one, "heads").why
    assert only(one, "heads").step.text.endswith("1, 2, 4")  # type: ignore[union-attr]
    assert said(start(path, tp=4)) == [], "KV heads are replicated"
    assert said(start(path, tp=3, device="cpu")) == [("heads", "warning")], "on a CPU heads are padded"
    other = Preflight(installed=Installed(("LlamaForCausalLM",), "other.py"))
    assert said(start(path, other, tp=3)) == [("heads", "warning")], "nobody says that it must be divisible"
    refused = Preflight(installed=Installed(proofs=("heads-divisible",)))
    assert ("heads", DOOM) in said(start(path, refused, tp=3, device="cpu"))
    assert said(start(path, tp=6, dp=3, dp_attention=True)) == [], "each group of DP attention has its own heads"


def test_an_architecture_that_the_version_does_not_know(tmp_path: Path) -> None:
    path = model(tmp_path / "m", architectures=["NewForCausalLM"])
    assert said(start(path)) == [("architecture", "warning")]


def test_code_of_its_own(tmp_path: Path) -> None:
    path = model(tmp_path / "m", auto_map={"AutoConfig": "x.Y"})
    assert said(start(path)) == [("remote-code", "warning")]
    assert said(start(path, raw=(("trust_remote_code", "True"),))) == []


def test_fewer_gpus_than_ranks(tmp_path: Path) -> None:
    path = model(tmp_path / "m", num_attention_heads=8, num_key_value_heads=8)
    cards = tuple(RankGpu("", n, 80 * GIB, 0) for n in range(4))
    assert said(start(path, gpus=cards, tp=8)) == [("devices", DOOM)]
    assert said(start(path, gpus=cards, tp=4)) == []
    shown = Preflight(env=(("CUDA_VISIBLE_DEVICES", "2,3"),))
    assert said(start(path, shown, gpus=cards, tp=4)) == [("devices", DOOM)]


def _fit(path: Path, free: int, **args: object) -> list[tuple[str, str]]:
    return said(start(path, gpus=(RankGpu("", 0, 80 * GIB, 80 * GIB - free, "70 GiB by pid 9 python", 9),), **args))


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    path = model(tmp_path / "m", bytes_each=10 * GIB)
    assert _fit(path, 19 * GIB) == [("gpu-memory", DOOM)]
    assert _fit(path, 21 * GIB) == [("gpu-memory", DOOM)], "the server leaves a sixth for activations and graphs"
    share = ("mem_fraction_static", "0.95")
    assert _fit(path, 21 * GIB, raw=(share,)) == [("gpu-memory", DOOM)]
    assert _fit(path, 22 * GIB, raw=(share,)) == [("gpu-memory", "warning")], "within the error of the estimate"
    assert _fit(path, 28 * GIB) == []
    assert _fit(path, 30 * GIB, raw=(("mem_fraction_static", "0.5"),)) == [("gpu-memory", DOOM)]
    assert _fit(path, 19 * GIB, raw=(("cpu_offload_gb", "8"),)) == [("gpu-held", "warning")], "not known"
    assert _fit(path, 19 * GIB, raw=(("quantization", "fp8"),)) == [
        ("gpu-held", "warning"),
        ("quantisation", "unknown"),
    ], "made smaller"


def test_wide_floats_count_as_half(tmp_path: Path) -> None:
    path = model(tmp_path / "m", bytes_each=10 * GIB, dtype="F32")
    one = start(path, tp=2)
    assert memory.least_bytes(one) == 5 * GIB
    assert memory.least_bytes(start(model(tmp_path / "q", bytes_each=10 * GIB, dtype="F8_E4M3"))) == 20 * GIB


def test_a_group_that_cannot_hold_the_weights(tmp_path: Path) -> None:
    path = model(tmp_path / "m", bytes_each=10 * GIB)
    facts = Preflight(limits=Limits(group_memory_bytes=16 * GIB, memory_total_bytes=64 * GIB, swap_bytes=0))
    assert said(start(path, facts, device="cpu", tp=2)) == [("host-memory", DOOM)]
    assert said(start(path, facts, tp=2)) == [("host-memory", "warning")], "mapped files can be dropped again"
    swap = replace(facts, limits=replace(facts.limits, swap_bytes=8 * GIB))
    assert said(start(path, swap, device="cpu", tp=2)) == []


def _listener(address: str, ours: bool | None = False) -> Listener:
    return Listener(address, 77, ours, "python3 -m http.server")


@pytest.mark.parametrize(
    ("held", "host", "level"),
    [
        ("127.0.0.1:30000", "127.0.0.1", DOOM),
        ("0.0.0.0:30000", "127.0.0.1", DOOM),
        ("127.0.0.1:30000", "0.0.0.0", DOOM),
        ("[::]:30000", "::", DOOM),
        ("10.0.0.5:30000", "127.0.0.1", "warning"),
        ("[::]:30000", "127.0.0.1", "warning"),  # it may be of IPv6 alone
        ("127.0.0.1:30000", "somewhere", "warning"),
    ],
)
def test_a_held_port(held: str, host: str, level: str) -> None:
    assert said(start(None, Preflight(port=(_listener(held),)), host=host)) == [("port", level)]


def test_a_port_that_is_no_finding() -> None:
    assert said(start(None, Preflight(port=(_listener("127.0.0.1:30000", True),)))) == []
    assert said(start(None, Preflight(port=(_listener("127.0.0.1:30000", None),)))) == [], "its owner is not seen"
    assert said(start(None, Preflight(port=(_listener("0.0.0.0:30000"),)), nnodes=2, tp=2, node_rank=1)) == []
    shared = (("enable_http_worker_reuseport", "True"),)
    assert said(start(None, Preflight(port=(_listener("0.0.0.0:30000"),)), raw=shared)) == [("port", "warning")]


def test_a_held_rendezvous_port() -> None:
    facts = Preflight(rendezvous=(_listener("0.0.0.0:20000"),), rendezvous_port=20000)
    assert said(start(None, facts, nnodes=2, tp=2)) == [("rendezvous-port", DOOM)]
    assert said(start(None, facts, nnodes=2, tp=2, node_rank=1)) == []


def test_addresses() -> None:
    lost = Preflight(resolved=(Resolved("rendezvous", "nowhere.invalid", error="unknown"),))
    assert said(start(None, lost)) == [("unresolved", DOOM)]
    assert said(start(None, lost, nnodes=2, tp=2)) == [("unresolved", DOOM)], "it is node 0's own name"
    assert said(start(None, lost, nnodes=2, tp=2, node_rank=1)) == [("unresolved", "warning")], "node 0 may bring it"
    assert said(start(None, replace(lost, away=True))) == [], "the server asks another resolver"
    foreign = Preflight(resolved=(Resolved("host", "10.9.9.9", ("10.9.9.9",), here=False),))
    assert said(start(None, foreign)) == [("address", DOOM)]
    assert said(start(None, Preflight(resolved=(Resolved("host", "10.9.9.9", ("10.9.9.9",), here=True),)))) == []


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("NCCL_SOCKET_IFNAME", "eth", ""),
        ("NCCL_SOCKET_IFNAME", "=eth", DOOM),
        ("NCCL_SOCKET_IFNAME", "ib0", DOOM),
        ("NCCL_SOCKET_IFNAME", "ib0,eth0", "warning"),
        ("NCCL_SOCKET_IFNAME", "^docker", ""),
        ("GLOO_SOCKET_IFNAME", "eth", DOOM),
        ("GLOO_SOCKET_IFNAME", "eth0", ""),
        ("GLOO_SOCKET_IFNAME", "bond0", "warning"),  # it is down
    ],
)
def test_interfaces(name: str, value: str, level: str) -> None:
    facts = Preflight(interfaces=(("lo", True), ("eth0", True), ("bond0", False)), env=((name, value),))
    assert [found for _, found in said(start(None, facts, tp=2))] == ([level] if level else [])
    assert DOOM not in [found for _, found in said(start(None, facts))], "a single rank opens no socket for others"


def test_disks_and_locks() -> None:
    facts = Preflight(
        spaces=(
            Space("shared memory", "/dev/shm", 64 * 1024**2, GIB),
            Space("caches", "/root/.cache", None, hung=True, remote=True, fstype="nfs4"),
            Space("log", "/logs", 50 * GIB, 100 * GIB, read_only=True),
            Space("temporary files", "/tmp", 50 * GIB, 100 * GIB),
        ),
        stale_locks=(("/root/.cache/torch_extensions/x/lock", 4000.0),),
    )
    expected = ["disk-full", "mount-hung", "read-only", "stale-lock"]
    assert said(start(None, facts)) == [(rule, "warning") for rule in expected]


def test_a_version_with_a_known_defect() -> None:
    one = start(None, skip_server_warmup=True)
    assert said(replace(one, version="0.4.10.post2")) == [("version", "warning")]
    assert said(one) == []


@pytest.mark.parametrize(("method", "level"), [("fp8", "ok"), ("nvfp4", "warning"), ("own", None)])
def test_quantisation_and_the_gpu_s_generation(tmp_path: Path, method: str, level: str | None) -> None:
    path = model(tmp_path / "m", quantization_config={"quant_method": method})
    one = start(path, gpus=(RankGpu("", 0, 80 * GIB, 0, capability=9.0),))
    assert next((f.level.value for f in forecast(one) if f.rule == "quantisation"), None) == level


@pytest.mark.parametrize(
    ("built", "branch", "level"), [("12.8", "535.54", "ok"), ("13.0", "570.1", "warning"), ("", "570.1", None)]
)
def test_the_driver_and_the_cuda_build(built: str, branch: str, level: str | None) -> None:
    one = replace(start(None, Preflight(installed=replace(INSTALLED, cuda=built))), driver=branch)
    assert next((f.level.value for f in forecast(one) if f.rule == "driver"), None) == level
