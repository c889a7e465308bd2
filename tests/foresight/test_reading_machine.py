"""The facts about the machine as they are read: kernel files, routes, quota, packages, a template's file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sgmon.analyse.foreseen import start_of
from sgmon.collect.gpu.links import links
from sgmon.collect.preflight import disks, installed, machine, models, quota, topology
from sgmon.commands.check import server_of
from sgmon.discovery import inner
from sgmon.model import LogState, Server, ServerArgs, Snapshot
from sgmon.model.preflight import Card, Place, Space
from sgmon.proc.mounts import Mount
from sgmon.servers import registry

COMMAND = ["--", "vllm", "serve", "m"]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_where_the_gpus_lie(tmp_path: Path) -> None:
    proc, system = tmp_path / "proc", tmp_path / "sys"
    for minor, bus in ((1, "0000:81:00.0"), (0, "0000:01:00.0")):
        _write(proc / f"driver/nvidia/gpus/{bus}/information", f"Model: \t NVIDIA H200\nDevice Minor: \t {minor}\n")
        _write(system / f"bus/pci/devices/{bus}/numa_node", f"{minor}\n")
        _write(system / f"bus/pci/devices/{bus}/iommu_group/type", "DMA-FQ\n")
    _write(
        proc / "driver/nvidia/params", 'EnableMSI: 1\nRegistryDwords: "ForceP2P=0x11"\nRegistryDwordsPerDevice: ""\n'
    )
    for node in ("node0", "node1", "possible"):
        _write(system / f"devices/system/node/{node}/cpulist", "0\n")
    found = topology.look(str(proc), str(system))
    assert found.cards == (Card(0, "0000:01:00.0", 0, "DMA-FQ"), Card(1, "0000:81:00.0", 1, "DMA-FQ"))
    assert (found.nodes, found.registry) == (2, "ForceP2P=0x11")
    _write(system / "bus/pci/devices/0000:81:00.0/numa_node", "-1\n")
    assert topology.look(str(proc), str(system)).cards[1].node is None, "a machine that does not tell"
    assert topology.look(str(tmp_path / "none"), str(tmp_path / "none")) == topology.Topology()


class _Nvml:
    """The two calls, as pynvml has them."""

    class NVMLError(Exception):
        pass

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetP2PStatus(self, one: int, two: int, what: int) -> int:
        if two == 3:
            raise self.NVMLError
        return {0: 0 if two == 1 else 1, 2: 0 if two == 1 else 5}[what]


def test_which_gpus_can_read_each_other_s_memory() -> None:
    found = links(_Nvml(), 4, lambda *place: None)
    assert (0, 1, "ok", True) in found
    assert (0, 2, "chipset not supported", False) in found
    assert all(3 not in pair[:2] for pair in found), "what is refused is not known"
    assert links(object.__new__(type("Old", (), {"NVMLError": _Nvml.NVMLError, "nvmlDeviceGetHandleByIndex": int})), 2,
                 lambda *place: None) == []  # fmt: skip


def test_routes_are_asked_of_the_kernel_alone() -> None:
    server = server_of([*COMMAND, "--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", "29501"])
    meeting = machine.resolved(server)[1]
    assert (meeting.what, meeting.routed, meeting.source) == ("rendezvous", True, "127.0.0.1")
    assert [one.what for one in machine.resolved(server, meets=False)] == ["host"]


def test_a_network_without_routes() -> None:
    """A real one: a new network namespace has none."""
    words = "from sgmon.collect.preflight import machine as m; from sgmon.model.preflight import Resolved as R; "
    words += "print(m._routed(R('rendezvous', 'x', ('198.51.100.7', '2001:db8::1')), 5).routed)"
    argv = ["unshare", "-n", sys.executable, "-c", words]
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if "unshare" in ran.stderr:
        pytest.skip(f"no network namespace can be made here: {ran.stderr.strip()}")
    assert ran.stdout.strip() == "False", ran.stderr


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_the_groups_above_count_as_well(tmp_path: Path, version: int) -> None:
    """A container's own group has often no limit; its pod's has."""
    root, groups = tmp_path / "proc", tmp_path / "cg"
    pod, own = groups / "pod", groups / "pod/own"
    if version == 2:
        _write(root / "7/cgroup", "0::/pod/own\n")
        _write(root / "self/mountinfo", f"1 0 0:1 / {groups} rw - cgroup2 cgroup rw\n")
        _write(own / "memory.max", "max\n")
        _write(pod / "memory.max", f"{8 << 30}\n")
        _write(own / "cpu.max", "max 100000\n")
        _write(pod / "cpu.max", "150000 100000\n")
    else:
        _write(root / "7/cgroup", "4:memory:/pod/own\n1:cpu:/pod/own\n")
        both = "".join(
            f"{n} 0 0:{n} / {groups} rw - cgroup cgroup rw,{name}\n" for n, name in ((1, "memory"), (2, "cpu"))
        )
        _write(root / "self/mountinfo", both)
        _write(own / "memory.limit_in_bytes", f"{16 << 30}\n")
        _write(pod / "memory.limit_in_bytes", f"{8 << 30}\n")
        _write(own / "cpu.cfs_quota_us", "-1\n")
        _write(pod / "cpu.cfs_quota_us", "150000\n")
        for folder in (own, pod):
            _write(folder / "cpu.cfs_period_us", "100000\n")
    assert machine._group(inner.Inside(str(root), 7)) == (8 << 30, 1.5)


def test_what_a_quota_leaves() -> None:
    text = (
        "Disk quotas for user u (uid 1000): \n     Filesystem  blocks   quota   limit   grace   files   quota   limit\n"
        "      /dev/sda1   20000*  10000   50000       0      12       0       0       0\n"
        "      host:/home    100       0       0       0      12       0       0       0\n"
    )
    assert quota.left_bytes(text, "/dev/sda1") == 30000 * 1024
    assert quota.left_bytes(text, "host:/home") is None, "a limit of 0 is none"
    assert quota.left_bytes(text, "/dev/sdb") is None
    assert quota.left_bytes("quota: error", "/dev/sda1") is None


@pytest.mark.parametrize(("options", "asked"), [("rw,usrquota", True), ("rw", False)])
def test_quota_is_asked_only_where_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, asked: bool
) -> None:
    program = tmp_path / "bin" / "quota"
    _write(program, '#!/bin/sh\necho "/dev/x 100 0 300 0 1 0 0 0"\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    inside = inner.of("/proc", os.getpid())
    inside = inside._replace(rows=(*inside.rows, Mount("0:9", "/", str(tmp_path), "ext4", "/dev/x", options)))
    found = quota.of(inside, Space("caches", str(tmp_path), 10**12))
    assert found.quota_bytes == (200 * 1024 if asked else None)


@pytest.mark.parametrize(("before_s", "counted"), [(60.0, True), (0.0, False)])
def test_segments_that_were_made_since_the_server_imported(tmp_path: Path, before_s: float, counted: bool) -> None:
    _write(tmp_path / "psm_1", "x" * 8192)
    server = Server(os.getpid(), 1, started_epoch=(tmp_path / "psm_1").stat().st_ctime - before_s)
    found = disks._with_new(inner.of("/proc", os.getpid()), Space("shared memory", str(tmp_path), 0), server)
    assert (found.new_bytes >= 8192) == counted


def test_small_free_space_is_told_exactly() -> None:
    assert disks._stepped(4096) == 4096
    assert disks._stepped(160 * 1024**2 + 5) == 160 * 1024**2
    assert disks._stepped(100 * 1024**3 + 5) == 100 * 1024**3


def test_packages_and_what_a_version_asks_for(tmp_path: Path) -> None:
    text = 'assert_pkg_version(\n    "flashinfer_python",\n    "0.7.2",\n)\nassert_pkg_version(\n  "sglang-kernel", "0.4.9", "x")\n'
    _write(tmp_path / "sglang/srt/entrypoints/engine.py", text)
    for name in (
        "sglang_kernel-0.4.8",
        "flashinfer_python-0.7.2",
        "torch-2.9.1+cu130",
        "requests-2.0",
        "torch-2.8.0",
    ):
        (tmp_path / f"{name}.dist-info").mkdir()
    inside = inner.of("/proc", os.getpid())
    found = installed.look(inside, registry.get("sglang"), str(tmp_path), ())
    assert found.demands == (("flashinfer-python", "0.7.2"), ("sglang-kernel", "0.4.9"))
    assert found.packages == (("flashinfer-python", "0.7.2"), ("sglang-kernel", "0.4.8")), "torch is there twice"


def test_only_the_file_that_lists_the_classes_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking through all 281 files of vLLM's models took 5 s, and told nothing."""
    folder = tmp_path / "vllm/model_executor/models"
    _write(folder / "registry.py", '    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),\n')
    _write(folder / "llama.py", '    "OtherForCausalLM": ("x", "y"),\n')
    read: list[str] = []
    text = inner.Inside.text
    monkeypatch.setattr(inner.Inside, "text", lambda *given: read.append(given[1]) or text(*given))
    found = installed.look(inner.of("/proc", os.getpid()), registry.get("vllm"), str(tmp_path), ("LlamaForCausalLM",))
    assert found.architectures == ("LlamaForCausalLM",)
    assert str(folder / "registry.py") in read and str(folder / "llama.py") not in read


def test_the_file_of_a_template(tmp_path: Path) -> None:
    inside = inner.of("/proc", os.getpid())
    _write(tmp_path / "t.jinja", "")
    assert models.template(inside, str(tmp_path / "t.jinja")) is Place.FILE
    assert models.template(inside, str(tmp_path / "none.jinja")) is Place.ABSENT
    assert models.template(inside, "chatml") is None
    assert models.template(inside, "{{ messages }}/x") is None
    assert models.template(inside, "") is None


def _logged(ahead: float, *, last_byte_t: float = 60.0) -> float | None:
    log = LogState(clock_zero=1000.0 + ahead, last_byte_t=last_byte_t)
    snapshot = Snapshot(epoch=1000.0, server=Server(1, 1, args=ServerArgs()), server_seen_t=0.0, log=log)
    assert snapshot.server is not None
    return start_of(snapshot, snapshot.server).skew_s


def test_the_skew_of_the_log_s_clock() -> None:
    assert _logged(37.0) == 37.0
    assert _logged(3600.0 - 5.0) == -5.0, "another time zone"
    assert _logged(37.0, last_byte_t=1.0) is None, "it was there before the watch"
