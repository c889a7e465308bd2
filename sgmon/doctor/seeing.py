"""What sgmon can see on this machine: ptrace, py-spy, NVML, namespaces, hidepid, the log's kind, RAS."""

from __future__ import annotations

import os
import platform
import shlex
import socket
import subprocess

from sgmon.doctor.check import Check, read
from sgmon.model import GpuReading, Server

GROUP = "seeing"
CAP_SYS_PTRACE = 19  # linux/capability.h
#: Documentation/admin-guide/LSM/Yama.rst
_SCOPES = {
    "0": "any process of the same user may be read",
    "1": "only descendants may be read (Ubuntu's default)",
    "2": "only root (CAP_SYS_PTRACE) may read",
    "3": "nobody may attach, root neither, until the next boot",
}
_LOG_KINDS = {
    "pipe": "a pipe: reading it would steal bytes. Start with `| tee FILE` and pass --log FILE, or use sgmon run",
    "pty": "a terminal: it cannot be read back. Start with `> FILE 2>&1`, or use sgmon run",
    "socket": "a socket (journald, docker): pass the log as --log FILE, e.g. from journalctl or docker logs",
    "null": "/dev/null: nothing is kept. The verdict works from /proc, stacks and the port alone",
    "deleted": "a deleted file: it is read through /proc and is gone when the server ends",
}

_SHARE = (
    "a server in another container: run sgmon on the host, or share the namespace (docker run --pid=container:NAME; "
    "Kubernetes: shareProcessNamespace: true, or kubectl debug --target=CONTAINER)"
)


def seeing(root: str, server: Server | None, gpu: GpuReading | None) -> list[Check]:
    """All checks of this group. ``gpu``: what the NVML child said, None when it did not answer in time."""
    checks = [*_proc(root), *_ptrace(server), _pyspy(), _nvml(gpu), _ras()]
    if server is not None:
        checks.append(_log(server))
    return checks


def _proc(root: str) -> list[Check]:
    checks = [Check(GROUP, "kernel", "ok", f"{platform.system()} {platform.release()}, uid {os.geteuid()}")]
    mounts = read(f"{root}/self/mounts") or ""
    options = next((line.split(" ")[3] for line in mounts.splitlines() if line.split(" ")[1:2] == ["/proc"]), "")
    hide = next((o.split("=")[1] for o in options.split(",") if o.startswith("hidepid=")), "0")
    if hide in ("0", "off"):
        checks.append(Check(GROUP, "hidepid", "ok", "other users' processes are visible"))
    else:
        words = f"/proc is mounted with hidepid={hide}: other users' processes look as if they did not exist"
        checks.append(Check(GROUP, "hidepid", "bad", words, "run sgmon as the server's user or as root"))
    status = read(f"{root}/self/status") or ""
    ns_pids = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
    inner = len(ns_pids) > 1 or _in_container()
    words = "inside a container: only its own processes are visible" if inner else "the host's"
    checks.append(Check(GROUP, "pid namespace", "note" if inner else "ok", words, _SHARE if inner else ""))
    return checks


def _in_container() -> bool:
    return os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") or "KUBERNETES_PORT" in os.environ


def _ptrace(server: Server | None) -> list[Check]:
    scope = read("/proc/sys/kernel/yama/ptrace_scope")
    powerful = _has_capability(CAP_SYS_PTRACE)
    checks = []
    if scope is None:
        checks.append(Check(GROUP, "ptrace_scope", "ok", "no Yama: the same user's processes may be read"))
    else:
        fine = scope == "0" or (powerful and scope in ("1", "2"))
        words = f"{scope}: {_SCOPES.get(scope, 'unknown value')}" + (" - not for us" if fine and scope != "0" else "")
        remedy = "" if fine else "sudo sgmon, or sudo sysctl kernel.yama.ptrace_scope=0"
        checks.append(Check(GROUP, "ptrace_scope", "ok" if fine else "bad", words, remedy))
    words = "held: stacks and blocked calls of every process" if powerful else "not held"
    checks.append(
        Check(
            GROUP,
            "CAP_SYS_PTRACE",
            "ok" if powerful else "note",
            words,
            "" if powerful else "docker: --cap-add SYS_PTRACE; Kubernetes: capabilities.add: [SYS_PTRACE]",
        )
    )
    if server is not None:
        try:
            owner = os.stat(f"/proc/{server.pid}").st_uid
        except OSError:
            owner = None
        if owner is not None and owner != os.geteuid() and not powerful:
            words = f"the server runs as uid {owner}, sgmon as {os.geteuid()}: fds, io, maps and stacks are hidden"
            checks.append(Check(GROUP, "server's user", "bad", words, f"sudo -u '#{owner}' sgmon, or sudo sgmon"))
    return checks


def _has_capability(number: int) -> bool:
    status = read("/proc/self/status") or ""
    mask = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(mask, 16) >> number & 1)


def _pyspy() -> Check:
    from sgmon.collect.probes.pyspy_dump import find_pyspy

    path = find_pyspy()
    if path is None:
        return Check(GROUP, "py-spy", "bad", "not found: no stacks", "pip install py-spy")
    try:
        run = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        return Check(GROUP, "py-spy", "bad", f"{path} does not run: {err}", "pip install --force-reinstall py-spy")
    return Check(GROUP, "py-spy", "ok", f"{run.stdout.strip() or 'unknown version'} ({path})")


def _nvml(gpu: GpuReading | None) -> Check:
    if gpu is None:
        return Check(GROUP, "NVML", "bad", "no answer in 5 s: the driver hangs", "nvidia-smi; dmesg | grep -i xid")
    if gpu.unavailable:
        return Check(GROUP, "NVML", "note", gpu.unavailable, gpu.remedy)
    names = ", ".join(sorted({one.name for one in gpu.gpus})) or "no GPU"
    return Check(GROUP, "NVML", "ok", f"driver {gpu.driver or '?'}: {len(gpu.gpus)} x {names}")


def _ras() -> Check:
    address = os.environ.get("NCCL_RAS_ADDR", "localhost:28028")
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host or "localhost", int(port)), timeout=1.0):
            return Check(GROUP, "NCCL RAS", "ok", f"something listens on {address}")
    except (OSError, ValueError):
        words = f"nothing on {address}: NCCL opens it with the first communicator (NCCL 2.24 or newer)"
        return Check(GROUP, "NCCL RAS", "note", words)


def _log(server: Server) -> Check:
    if server.log_kind == "file":
        return Check(GROUP, "log", "ok", f"{server.log_path} ({server.log_source})")
    if server.log_command:
        return Check(GROUP, "log", "ok", f"{shlex.join(server.log_command)} ({server.log_source})")
    gap = next((gap for gap in server.missing if gap.signal == "log"), None)
    if gap is not None:
        return Check(GROUP, "log", "note", gap.why, gap.remedy)
    words = _LOG_KINDS.get(server.log_kind, "not found: pass --log FILE")
    return Check(GROUP, "log", "note", f"{server.log_path or server.log_kind or '?'}: {words}")
