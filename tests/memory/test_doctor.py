"""The doctor: what it finds in a /proc, in caches, on ports; it prints commands and runs none."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from sgmon.collect.preflight.locks import STALE_LOCK_S
from sgmon.doctor import Check, seeing, server_checks, starting
from sgmon.model import Gpu, GpuProcess, GpuReading
from tests.memory import watches
from tui_app.cli import main

GIB = 1024**3


def _named(checks: list[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


def _proc(root: Path, mounts: str = "proc /proc proc rw,nosuid 0 0\n") -> Path:
    (root / "self").mkdir(parents=True)
    (root / "self" / "mounts").write_text(mounts)
    (root / "self" / "status").write_text("NSpid:\t1\nCapEff:\t0000000000000000\n")
    return root


def test_hidepid_is_told(tmp_path: Path) -> None:
    plain = _named(seeing(str(_proc(tmp_path / "a")), None, None), "hidepid")
    hidden = _named(
        seeing(str(_proc(tmp_path / "b", "proc /proc proc rw,hidepid=invisible 0 0\n")), None, None), "hidepid"
    )
    assert (plain.status, hidden.status) == ("ok", "bad")
    assert "hidepid=invisible" in hidden.text
    assert hidden.remedy


def test_a_silent_driver_and_a_missing_one(tmp_path: Path) -> None:
    root = str(_proc(tmp_path))
    assert _named(seeing(root, None, None), "NVML").status == "bad"
    off = _named(seeing(root, None, GpuReading(unavailable="no driver", remedy="install it")), "NVML")
    assert (off.status, off.text, off.remedy) == ("note", "no driver", "install it")


def test_pyspy_beside_the_command_is_found_without_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's installation: Python lies elsewhere, and the folder of the commands is not on the path."""
    root = str(_proc(tmp_path / "proc"))
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, text in (("sgmon", ""), ("py-spy", "#!/bin/sh\necho py-spy 0.4.1\n")):
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python3"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("site.getuserbase", lambda: str(tmp_path / "nobody"))
    monkeypatch.setattr("sys.argv", [str(bin_ / "sgmon"), "doctor"])
    found = _named(seeing(root, None, None), "py-spy")
    assert (found.status, found.text) == ("ok", f"py-spy 0.4.1 ({bin_ / 'py-spy'})")
    monkeypatch.setattr("sys.argv", ["-c"])
    monkeypatch.chdir(bin_)
    assert _named(seeing(root, None, None), "py-spy").text == "not found: no stacks"


@pytest.mark.parametrize(("kind", "word"), [("pipe", "steal"), ("pty", "terminal"), ("null", "nothing is kept")])
def test_the_kind_of_the_log(kind: str, word: str, tmp_path: Path) -> None:
    server = replace(watches.SERVER, log_kind=kind, log_path="")
    check = _named(seeing(str(_proc(tmp_path)), server, None), "log")
    assert check.status == "note"
    assert word in check.text


def _server_proc(root: Path, exe: str, space: str = "pid:[1]", cgroup: str = "0::/\n") -> Path:
    for pid, own in (("self", "pid:[1]"), ("4711", space)):
        for name in ("pid", "mnt", "net"):
            (root / pid / "ns").mkdir(parents=True, exist_ok=True)
            os.symlink(own, root / pid / "ns" / name)
    os.symlink(exe, root / "4711" / "exe")
    (root / "4711" / "cgroup").write_text(cgroup)
    for name in ("maps", "environ", "io"):
        (root / "4711" / name).write_text("")
    (root / "4711" / "fd").mkdir()
    return root


@pytest.mark.parametrize(("exe", "status"), [("python3.11", "ok"), ("python3.15", "note"), ("sglang", "unknown")])
def test_the_servers_python(exe: str, status: str, tmp_path: Path) -> None:
    checks = server_checks(str(_server_proc(tmp_path, f"/usr/bin/{exe}")), watches.SERVER)
    assert _named(checks, "its Python").status == status
    assert _named(checks, "container").status == "ok"
    assert _named(checks, "its /proc").status == "ok"


def test_a_server_in_a_container(tmp_path: Path) -> None:
    cgroup = f"0::/system.slice/docker-{'0123456789ab'}{'c' * 52}.scope\n"
    root = _server_proc(tmp_path, "/usr/bin/python3.11", "pid:[2]", cgroup)
    check = _named(server_checks(str(root), watches.SERVER), "container")
    assert check.status == "note"
    assert "docker 0123456789ab" in check.text
    assert "docker exec 0123456789ab sgmon" in check.remedy


def test_a_port_that_is_held() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        check = _named(starting("/proc", port, None), f"port {port}")
        assert check.status == "bad"
        assert f"pid {os.getpid()}" in check.text
    assert _named(starting("/proc", port, None), f"port {port}").status == "ok"


def test_leftover_gpu_memory() -> None:
    held = Gpu(0, total_bytes=80 * GIB, used_bytes=70 * GIB, processes=(GpuProcess(99, 70 * GIB, name="python"),))
    free = Gpu(1, total_bytes=80 * GIB, used_bytes=GIB // 2)
    checks = starting("/proc", 1, GpuReading(gpus=(held, free)))
    assert _named(checks, "memory of GPU 0").status == "note"
    assert "70.0 GiB by pid 99 python" in _named(checks, "memory of GPU 0").text
    assert _named(checks, "memory of GPU 1").status == "ok"


def test_a_stale_build_lock_is_told_with_its_rm_line_and_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    stale, fresh, harmless = tmp_path / "a" / "lock", tmp_path / "b" / "lock", tmp_path / "c" / "x.lock"
    for path in (stale, fresh, harmless):
        path.parent.mkdir()
        path.write_text("")
    for path in (stale, harmless):
        long_ago = path.stat().st_mtime - 2 * STALE_LOCK_S
        os.utime(path, (long_ago, long_ago))
    locks = [check for check in starting("/proc", 1, None) if check.name == "build lock"]
    assert [check.remedy for check in locks] == [f"rm {stale}"]
    assert stale.exists()


@pytest.mark.parametrize(
    ("value", "status"),
    [("lo", "ok"), ("l", "ok"), ("=lo", "ok"), ("ib9", "note"), ("=l", "note"), ("^docker", None)],
)
def test_nccl_interfaces(value: str, status: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", value)
    found = [check.status for check in starting("/proc", 1, None) if check.name == "NCCL_SOCKET_IFNAME"]
    assert found == ([status] if status else [])


def test_an_interface_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    down = next(iter(psutil.net_if_stats().values()))._replace(isup=False)
    monkeypatch.setattr(psutil, "net_if_stats", lambda: {"ib0": down})
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "ib")
    check = _named(starting("/proc", 1, None), "NCCL_SOCKET_IFNAME")
    assert (check.status, check.text) == ("note", "ib: the interface is down")


def test_the_command_lists_both_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--no-gpu", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {"ptrace_scope", "CAP_SYS_PTRACE", "py-spy", "NVML", "NCCL RAS"} <= {check["name"] for check in checks}
    assert {check["group"] for check in checks} >= {"seeing"}
    assert main(["doctor", "--no-gpu"]) == 0
    assert "seeing" in capsys.readouterr().out


def test_an_orphan_on_a_gpu_has_words_and_a_remedy() -> None:
    orphan = Gpu(
        2,
        total_bytes=140 << 30,
        used_bytes=31 << 30,
        processes=(GpuProcess(4711, 31 << 30, name="sglang::scheduler"),),
    )
    check = _named(starting("/proc", 30999, GpuReading((orphan,))), "memory of GPU 2")
    assert check.status == "note"
    assert "31.0 GiB by pid 4711, sglang::scheduler of a server that is gone" in check.text
    assert check.remedy == "kill 4711"
