"""Rules about what surrounds a start: GPUs and what connects them, disks, routes, clocks, versions, sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sgmon.foresight.check import forecast
from sgmon.foresight.start import RankGpu, Start
from sgmon.model import GpuLink, Missing, ServerArgs
from sgmon.model.preflight import Card, Installed, Level, Place, Preflight, Resolved, Space, Topology
from sgmon.servers import registry
from sgmon.servers.family import ServerFamily
from tests.foresight.starts import GIB, INSTALLED, model, only, said, start

DOOM = Level.WILL_FAIL.value
MIB = 1024**2
TWO = (RankGpu("TP0", 0, 80 * GIB, 0, minor=0), RankGpu("TP1", 1, 80 * GIB, 0, minor=1))


def _linked(*links: GpuLink, **facts: Any) -> Start:
    return replace(start(None, Preflight(**facts), gpus=TWO, tp=2), links=links)


def _level(one: Start, rule: str) -> str | None:
    return next((found.level.value for found in forecast(one) if found.rule == rule), None)


def test_gpus_that_cannot_read_each_other_s_memory() -> None:
    one = _linked(GpuLink(0, 1, "chipset not supported", False))
    assert said(one) == [("peers", "warning")]
    assert "GPU 0 and 1 cannot read each other's memory (chipset not supported)" in only(one, "peers").text
    assert _level(_linked(GpuLink(0, 1, "ok", True)), "peers") == "ok"
    assert only(_linked(GpuLink(0, 1, "ok", True)), "peers").text == "1 pair of GPUs, NVLink"
    off = _linked(GpuLink(0, 1, "ok", True), env=(("NCCL_P2P_DISABLE", "1"),))
    assert said(off) == [("peers", "warning")]
    assert _level(_linked(GpuLink(2, 3, "not supported")), "peers") == "unknown", "not of the ranks' GPUs"
    assert _level(start(None, gpus=TWO[:1]), "peers") is None


@pytest.mark.parametrize(
    ("iommu", "nvlink", "expected"),
    [("DMA-FQ", False, "warning"), ("identity", False, None), ("DMA", True, None), ("", False, None)],
)
def test_the_iommu_and_peer_access_over_pcie(iommu: str, nvlink: bool, expected: str | None) -> None:
    cards = (Card(0, "0000:01:00.0", 0, iommu), Card(1, "0000:02:00.0", 0, iommu))
    one = _linked(GpuLink(0, 1, "ok", nvlink), topology=Topology(cards, 1))
    assert _level(one, "iommu") == expected


def test_numa_nodes_are_a_note() -> None:
    cards = (Card(0, "0000:01:00.0", 0), Card(1, "0000:81:00.0", 1), Card(2, "0000:82:00.0", 1))
    one = _linked(GpuLink(0, 1), topology=Topology(cards, 2))
    assert only(one, "numa").text == "1 GPU on node 0, 1 GPU on node 1"
    assert _level(_linked(GpuLink(0, 1), topology=Topology(cards, 1)), "numa") is None
    dark = Topology((replace(cards[0], node=None), cards[1]), 2)
    assert _level(_linked(GpuLink(0, 1), topology=dark), "numa") == "unknown"


def test_settings_of_the_driver_that_change_peer_access() -> None:
    one = _linked(GpuLink(0, 1), topology=Topology(registry="ForceP2P=0x11"))
    assert said(one) == [("driver-settings", "warning")]


def _shm(
    family: str, free: int, *, new: int = 0, proofs: tuple[str, ...] = ("shm-checked", "shm-page"), **args: Any
) -> Any:
    space = Space("shared memory", "/dev/shm", free, 32 * GIB, new_bytes=new)
    facts = Preflight(spaces=(space,), installed=Installed(proofs=proofs))
    one = Start(registry.get(family), ServerArgs(**args), facts, version="0.32.0")
    return _level(one, "shared-memory")


def test_shared_memory_that_the_version_asks_for() -> None:
    assert _shm("vllm", 64 * MIB - 4096, tp=2) == DOOM, "docker's default"
    assert _shm("vllm", 160 * MIB, tp=2) == "ok", "free space is told in steps"
    assert _shm("vllm", 100 * MIB, new=80 * MIB, tp=2) == "ok", "its own segment is among what is new"
    assert _shm("vllm", 64 * MIB, tp=1) is None
    assert _shm("vllm", 64 * MIB, tp=2, proofs=()) is None, "this version does not look"
    assert _shm("vllm", 64 * MIB, tp=2, raw=(("distributed_executor_backend", "ray"),)) is None
    assert _shm("sglang", 0, tp=2) == DOOM
    assert _shm("sglang", 4096, tp=2) == "ok"
    assert _shm("sglang", 0, tp=1) is None


def test_quota_files_and_mounts_of_other_machines() -> None:
    caches = Space("caches", "/home/u/.cache", 50 * GIB, 100 * GIB)
    small = replace(caches, quota_bytes=100 * MIB)
    few = replace(caches, free_files=3)
    far = replace(caches, remote=True, fstype="nfs4")
    log = replace(far, what="log")
    for space, expected in ((small, "disk-quota"), (few, "disk-files"), (far, "disk-remote")):
        assert said(start(None, Preflight(spaces=(space,)))) == [(expected, "warning")]
    assert said(start(None, Preflight(spaces=(caches, log)))) == []
    assert "nfs4: another machine answers" in only(start(None, Preflight(spaces=(log,))), "disk").text


def test_routes() -> None:
    lost = Resolved("rendezvous", "10.9.9.9", ("10.9.9.9",), routed=False)
    assert said(start(None, Preflight(resolved=(lost,)), nnodes=2, tp=2)) == [("no-route", DOOM)]
    assert said(start(None, Preflight(resolved=(lost,), away=True), nnodes=2, tp=2)) == []
    own = Resolved("rendezvous", "node0", ("127.0.1.1",), routed=True)
    assert said(start(None, Preflight(resolved=(own,)), nnodes=2, tp=2)) == [("loopback", "warning")]
    assert said(start(None, Preflight(resolved=(own,)))) == [], "one node meets itself there"


@pytest.mark.parametrize(
    ("skew", "expected"), [(None, None), (0.4, "ok"), (-3.0, "ok"), (37.0, "warning"), (-200.0, "warning")]
)
def test_the_clock_of_the_log(skew: float | None, expected: str | None) -> None:
    assert _level(replace(start(None), skew_s=skew), "clock") == expected


KERNEL = replace(INSTALLED, cuda="13.0", demands=(("sglang-kernel", "0.4.9"), ("flashinfer-python", "0.7.2")))
SET = (("HOME", "/root"),)


def _packages(
    *packages: tuple[str, str], env: tuple[tuple[str, str], ...] = SET, **args: Any
) -> list[tuple[str, str]]:
    return said(start(None, Preflight(installed=replace(KERNEL, packages=packages), env=env), **args))


def test_packages_that_are_older_than_the_version_asks_for() -> None:
    assert _packages(("sglang-kernel", "0.4.8")) == [("package", DOOM)]
    assert _packages(("sglang-kernel", "0.4.10")) == []
    assert _packages() == [], "not found is not old"
    assert _packages(("flashinfer-python", "0.7.1")) == [("package", "warning")], "with one backend alone"
    assert _packages(("sglang-kernel", "0.4.8"), device="cpu") == []
    assert _packages(("sglang-kernel", "0.4.8"), env=(("SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK", "1"),)) == []
    blank = Preflight(
        installed=replace(KERNEL, packages=(("sglang-kernel", "0.4.8"),)), missing=(Missing("environment", "blank"),)
    )
    assert said(start(None, blank)) == [("package", "warning")], "it may be switched off"


def test_combinations_that_are_reported_to_fail() -> None:
    odd = (("flashinfer-python", "0.7.4"), ("flashinfer-cubin", "0.7.3"))
    assert _packages(*odd) == [("package", "warning")]
    assert _packages(odd[0], ("flashinfer-cubin", "0.7.4")) == []
    torch = (("torch", "2.9.1+cu130"), ("nvidia-cudnn-cu13", "9.13.0.50"))
    facts = Preflight(installed=replace(INSTALLED, packages=torch))
    one = replace(start(None, facts), version="0.5.8")
    assert said(one) == [("version", "warning")]
    assert "https://github.com/sgl-project/sglang/pull/14119" in only(one, "version").text
    newer = replace(INSTALLED, packages=(torch[0], ("nvidia-cudnn-cu13", "9.16.0.29")))
    assert said(replace(start(None, Preflight(installed=newer)), version="0.5.8")) == []
    five = Preflight(installed=Installed(packages=(("transformers", "5.1.0"),)))
    vllm = Start(registry.get("vllm"), ServerArgs(), five, version="0.11.0")
    assert _level(vllm, "version") == "warning"
    assert _level(replace(vllm, version="0.32.0"), "version") is None


def test_a_host_that_nobody_listens_on_is_not_judged() -> None:
    lost = Preflight(resolved=(Resolved("host", "nowhere.invalid", error="unknown"),))
    assert said(start(None, lost)) == [("unresolved", DOOM)]
    assert said(start(None, lost, uds="/run/s")) == [] == said(start(None, lost, headless=True))


def test_the_file_of_a_chat_template() -> None:
    raw = (("chat_template", "/none.jinja"),)
    lost = Preflight(chat_template=Place.ABSENT, installed=replace(INSTALLED, proofs=("template-file",)))
    assert said(start(None, lost, raw=raw)) == [("chat-template", DOOM)]
    assert said(start(None, replace(lost, installed=INSTALLED), raw=raw)) == [("chat-template", "warning")]
    assert said(start(None, replace(lost, chat_template=Place.FILE), raw=raw)) == []
    assert said(start(None, lost, raw=raw, node_rank=1)) == [("chat-template", "warning")], "that node serves nobody"


def test_experts_of_a_model_that_has_none(tmp_path: Path) -> None:
    dense = model(tmp_path / "dense")
    sure = Preflight(installed=replace(INSTALLED, proofs=("experts-wanted",)))
    assert said(start(dense, sure, tp=2, ep=2)) == [("experts", DOOM)]
    assert said(start(dense, tp=2, ep=2)) == [("experts", "warning")]
    assert said(start(model(tmp_path / "moe", num_experts=8), sure, tp=2, ep=2)) == []
    odd = ("experts", "unknown")
    assert said(start(model(tmp_path / "odd", moe_layers=3), sure, tp=2, ep=2)) == [odd]
    nested = model(tmp_path / "nested", thinker_config={"text_config": {"n_experts": 8}})
    assert said(start(nested, sure, tp=2, ep=2)) == [odd]
    assert said(start(model(tmp_path / "six", num_experts=6), sure, tp=4, ep=4)) == [("experts", "warning")]


def test_ranks_that_cannot_be_divided_among_the_nodes() -> None:
    sure = Preflight(installed=replace(INSTALLED, proofs=("nodes-divide",)))
    assert said(start(None, sure, tp=3, nnodes=2)) == [("nodes", DOOM)]
    assert said(start(None, tp=3, nnodes=2)) == [("nodes", "warning")]
    assert said(start(None, sure, tp=4, nnodes=2)) == []
    assert said(start(None, sure, tp=3, nnodes=2, raw=(("ep_join_mode", "scale"),))) == []


def test_a_version_that_is_built_for_cpus() -> None:
    vllm = Start(registry.get("vllm"), ServerArgs(), Preflight(), version="0.32.0+cpu")
    assert vllm.on_cpu and not replace(vllm, version="0.32.0").on_cpu
    assert not start(None).on_cpu and start(None, device="cpu").on_cpu


def test_heads_where_torch_is_built_without_cuda(tmp_path: Path) -> None:
    """The device is not in the arguments; on a CPU heads are padded, on others it is not known."""
    facts = Preflight(installed=replace(INSTALLED, packages=(("torch", "2.13.0+cpu"),)))
    assert said(start(model(tmp_path / "m"), facts, tp=3)) == [("heads", "warning")]
    cuda = replace(facts, installed=replace(facts.installed, cuda="13.0"))
    assert said(start(model(tmp_path / "c"), cuda, tp=3)) == [("heads", DOOM)]


@pytest.mark.parametrize("family", registry.families(), ids=lambda family: family.name)
def test_every_stage_is_a_phase_of_the_family(family: ServerFamily) -> None:
    """Of a phase that is not there no forecast would ever be over."""
    stages = ("arguments", "tokenizer", "template", "ranks", "rendezvous", "weights", "kv_cache", "port")
    assert {stage for stage, _ in family.start.stages} == set(stages)
    assert {phase for _, phase in family.start.stages} <= {phase.name for phase in family.phases.phases}
    assert {proof for proof, _, _ in family.start.proofs} >= {"missing-shard", "index-read", "template-file"}


def test_the_rendezvous_of_one_node_is_not_vllm_s() -> None:
    rules = registry.get("vllm").start
    assert not rules.meets(ServerArgs(tp=2)) and rules.meets(ServerArgs(tp=2, nnodes=2))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"speculative_config": '{"model": "/m/eagle", "method": "eagle"}'}, "/m/eagle"),
        ({"speculative_config": "{'model': '/m/eagle', 'num_speculative_tokens': 3}"}, "/m/eagle"),
        ({"speculative_config": '{"method": "ngram"}'}, ""),
        ({"speculative_config": '{"model": "[ngram]"}'}, ""),
        ({"speculative_config": '{"model": "/m/eag'}, ""),
        ({"speculative_model": "/m/draft"}, "/m/draft"),
        ({}, ""),
    ],
)
def test_the_draft_model_of_vllm(raw: dict[str, str], expected: str) -> None:
    assert registry.get("vllm").start.options(ServerArgs(raw=tuple(raw.items()))).draft_path == expected


def test_a_draft_that_the_version_does_not_know(tmp_path: Path) -> None:
    one = start(model(tmp_path / "m"))
    draft = start(model(tmp_path / "d", architectures=["NewEagle"])).facts.model
    assert said(replace(one, facts=replace(one.facts, draft=draft))) == [("architecture", "warning")]
