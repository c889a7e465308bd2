"""Before a start: what would spoil it. Prints commands, never runs them."""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from sgmon import units
from sgmon.analyse.diagnosis.holders import words
from sgmon.analyse.gpu.holders import holdings
from sgmon.doctor.check import Check, Status, read
from sgmon.model import Gpu, GpuReading
from sgmon.servers import registry

GROUP = "before a start"
#: a build lock younger than this may belong to a build that is going on
STALE_LOCK_S = 300.0
LOOKED_AT_MOST = 20_000
SHM_WANTED = 1 * units.GIB
CACHE_WANTED = 10 * units.GIB
#: where the dependencies of servers compile to, and how their lock files are called
_CACHES = (
    ("TORCH_EXTENSIONS_DIR", "~/.cache/torch_extensions", ("lock",)),
    ("FLASHINFER_WORKSPACE_BASE", "~/.cache/flashinfer", (".lock",)),
    ("TRITON_CACHE_DIR", "~/.triton", (".lock",)),
    ("TVM_FFI_CACHE_DIR", "~/.cache/tvm-ffi", (".lock",)),
    ("AITER_JIT_DIR", "~/.aiter", (".lock", "lock")),
    *(cache for family in registry.families() for cache in family.compile_caches),
)


def starting(root: str, port: int, gpu: GpuReading | None) -> list[Check]:
    """All checks of this group for a start on ``port``."""
    return [
        _port(root, port),
        *_gpu_memory(gpu),
        _shm(),
        _memlock(),
        *_tools(),
        *_locks(),
        _room(),
        *_interfaces(),
    ]


def _port(root: str, port: int) -> Check:
    from sgmon.collect.probes.listeners import Listeners

    try:
        found = Listeners(root).find(None, frozenset(), port, 0.0)
    except OSError as err:
        return Check(GROUP, f"port {port}", "unknown", f"the socket table cannot be read: {err.strerror}")
    if not found:
        return Check(GROUP, f"port {port}", "ok", "free")
    who = "; ".join(f"pid {one.pid or '?'} {one.name}".strip() for one in found)
    words = f"held by {who}: a start on it fails only at its end, after the whole load"
    return Check(GROUP, f"port {port}", "bad", words, f"ss -ltnp 'sport = :{port}'; or another --port")


def _gpu_memory(gpu: GpuReading | None) -> Iterator[Check]:
    """No server runs when this is asked: a server's worker that holds memory is one that was left behind."""
    if gpu is None or not gpu.gpus:
        return
    for one in gpu.gpus:
        if one.error:
            yield Check(GROUP, f"GPU {one.index}", "bad", one.error, gpu.remedy)
        elif one.used_bytes is None or one.total_bytes is None:
            yield Check(GROUP, f"GPU {one.index}", "unknown", "memory not readable")
        elif one.used_bytes > 0.02 * one.total_bytes:
            yield _held(one)
        else:
            yield Check(GROUP, f"GPU {one.index}", "ok", f"{units.size(one.total_bytes)} free")


def _held(gpu: Gpu) -> Check:
    held = holdings(gpu)
    who = "; ".join(f"{units.size(one.used_bytes)} by {words(one)}" for one in held) or "nobody that the driver lists"
    orphans = " ".join(str(one.pid) for one in held if one.kind == "orphan")
    pids = ",".join(str(one.pid) for one in held if one.pid)
    remedy = f"ps -o pid,ppid,user,etime,args -p {pids}" if pids else "nvidia-smi; then dmesg"
    if orphans:
        remedy = f"kill {orphans} (no server is left that they work for)"
    in_use = f"{units.size(gpu.used_bytes)} of {units.size(gpu.total_bytes)} in use"
    return Check(GROUP, f"GPU {gpu.index}", "bad", f"{in_use}: {who}", remedy)


def _shm() -> Check:
    try:
        free = shutil.disk_usage("/dev/shm").free
    except OSError:
        return Check(GROUP, "/dev/shm", "unknown", "not there")
    status: Status = "ok" if free >= SHM_WANTED else "bad"
    remedy = "" if status == "ok" else "docker run --shm-size 32g (or --ipc=host); Kubernetes: emptyDir medium Memory"
    return Check(GROUP, "/dev/shm", status, f"{units.size(free)} free", remedy)


def _memlock() -> Check:
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if soft == resource.RLIM_INFINITY:
        return Check(GROUP, "memlock", "ok", "unlimited")
    words = f"{units.size(soft)}: RDMA and pinned host memory may fail"
    return Check(GROUP, "memlock", "note", words, "docker run --ulimit memlock=-1; systemd: LimitMEMLOCK=infinity")


def _tools() -> Iterator[Check]:
    for name, why in (("ninja", "JIT builds need it"), ("nvcc", "flashinfer and DeepGEMM builds need it")):
        path = shutil.which(name)
        yield Check(GROUP, name, "ok" if path else "note", path or f"not on PATH: {why}")


def _locks() -> list[Check]:
    held = _locked_inodes()
    stale = [path for path in _lock_files() if _is_stale(path, held)]
    if not stale:
        return [Check(GROUP, "build locks", "ok", "no stale one in the known caches")]
    return [
        Check(
            GROUP,
            "build lock",
            "bad",
            f"{path} is {units.duration(time.time() - path.stat().st_mtime)} old and nobody holds it: "
            "a build that waits for the file alone waits for ever",
            f"rm {path}",
        )
        for path in stale
    ]


def _lock_files() -> Iterator[Path]:
    looked = 0
    for variable, default, names in _CACHES:
        folder = Path(os.environ.get(variable) or default).expanduser()
        for where, _, files in os.walk(folder):
            looked += len(files) + 1
            if looked > LOOKED_AT_MOST:
                return
            for name in files:
                if name in names or any(name.endswith(end) for end in names if end.startswith(".")):
                    yield Path(where) / name


def _is_stale(path: Path, held: frozenset[int]) -> bool:
    """A file that is a lock by being there (torch's FileBaton) and that no live process holds or has just made.

    flock files stay behind after every build and harm nobody: only files called "lock" count when no one holds them.
    """
    try:
        status = path.stat()
    except OSError:
        return False
    return path.name == "lock" and status.st_ino not in held and time.time() - status.st_mtime > STALE_LOCK_S


def _locked_inodes() -> frozenset[int]:
    inodes = set()
    for line in (read("/proc/locks") or "").splitlines():
        place = next((word for word in line.split() if word.count(":") == 2), "")
        if place:
            inodes.add(int(place.rsplit(":", 1)[1]))
    return frozenset(inodes)


def _room() -> Check:
    home = Path.home()
    try:
        free = shutil.disk_usage(home).free
    except OSError as err:
        return Check(GROUP, "disk", "unknown", f"{home}: {err.strerror}")
    status: Status = "ok" if free >= CACHE_WANTED else "bad"
    return Check(GROUP, "disk", status, f"{units.size(free)} free for caches under {home}")


def _interfaces() -> Iterator[Check]:
    import psutil

    try:
        up = {name: state.isup for name, state in psutil.net_if_stats().items()}
    except OSError:
        return
    there = set(up)
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = os.environ.get(name, "")
        if not value:
            continue
        exact = value.startswith("=")
        wanted = [word for word in value.lstrip("=^").split(",") if word]
        if value.startswith("^"):
            continue
        lost = [w for w in wanted if not (w in there if exact or name.startswith("GLOO") else _begins(there, w))]
        if lost:
            words = f"{value}: no interface {', '.join(lost)} here (there are {', '.join(sorted(there))})"
            yield Check(GROUP, name, "bad", words, f"unset {name}, or name one of these")
        elif not any(up[each] for word in wanted for each in there if each.startswith(word)):
            yield Check(GROUP, name, "bad", f"{value}: the interface is down", f"ip link set {wanted[0]} up")
        else:
            yield Check(GROUP, name, "ok", value)


def _begins(there: set[str], prefix: str) -> bool:
    """NCCL takes the names as prefixes (NCCL user guide, NCCL_SOCKET_IFNAME)."""
    return any(name.startswith(prefix) for name in there)
