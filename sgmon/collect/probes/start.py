"""What surrounds a start: the launcher's settings, the model's mount, how much of the model is in the page cache.

Read once a server. Nothing of the model is read: ``mincore`` on a mapping that is never touched tells what is cached.
"""

from __future__ import annotations

import mmap
import os
import socket
from collections.abc import Mapping

from sgmon.collect.compile_caches import CACHES
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.model_files import model_folders
from sgmon.discovery import inner
from sgmon.model import Missing, Server, StartReading
from sgmon.proc import mounts
from sgmon.servers import registry
from sgmon.text import MASK, is_secret_name, safe

#: settings that change how a start goes
_PREFIXES = (
    *("NCCL_", "GLOO_", "CUDA_", "TORCH_", "PYTORCH_", "TRITON_", "FLASHINFER_", "NVSHMEM_"),
    *("OMP_", "HF_", "HUGGINGFACE_", "UCX_", "MC_", "MOONCAKE_", "ROCM_", "HIP_", "AITER_"),
    *(prefix for family in registry.families() for prefix in family.env_prefixes),
)
_NAMES = frozenset(
    {"LD_PRELOAD", "LD_LIBRARY_PATH", "http_proxy", "https_proxy", "no_proxy", "TMPDIR", "NVIDIA_VISIBLE_DEVICES"}
)
_VALUE_LIMIT = 300
#: as much of each file is asked about
_LOOKED_BYTES = 1 << 30
_LOOKED_FILES = 64
#: files of the caches of compiled kernels that are counted: whether there are any is what counts
_COUNTED_FILES = 64
#: all that a start fills
_FILLED = (
    ("TORCHINDUCTOR_CACHE_DIR", "/tmp/torchinductor_USER"),
    ("TRITON_CACHE_DIR", "~/.triton/cache"),
    *CACHES,
)


#: after it has described the server; another one wakes it
REST_S = 30.0


class StartProbe:
    """Silent until there is a server it has not described yet."""

    name = "start"
    kind = "start"
    interval_s = 1.0
    deadline_s = 5.0

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._reported: tuple[int, int] | None = None

    def read(self) -> StartReading | None:
        server = self._watched.server
        is_known = server is not None and server.key == self._reported
        self.interval_s = REST_S if is_known else 1.0
        if server is None or is_known or not server.args.model_path:
            return None
        self._reported = server.key
        return describe(self._watched.settings.proc_root, server)

    def close(self) -> None:
        """Nothing is kept open."""


def describe(root: str, server: Server) -> StartReading:
    """One look."""
    inside = inner.of(root, server.pid)
    environ = inner.environment(root, server.pid)
    hidden = Missing(
        "environment", "hidden: the process belongs to another user", "run sgmon as its user or with sudo"
    )
    folder = next((path for path in model_folders(inside, server) if _is_folder(inside, path)), "")
    mount = mounts.of_path(inside.rows, folder) if folder else None
    remote = mount is not None and mount.remote
    return StartReading(
        pid=server.pid,
        host=socket.gethostname(),
        env=telling(environ or {}),
        mount=mount.fstype if mount is not None else "",
        cached=None if not folder or remote else cached_share(inside.reach(folder)),
        cache_files=_cache_files(inside, environ) if environ else None,
        missing=(hidden,) if environ is None else (),
    )


def _cache_files(inside: inner.Inside, environ: dict[str, str]) -> int | None:
    """Files in the caches of compiled kernels, counted up to a limit; None where one lies on a remote file system, or
    may not be read. A title blanks the environment, and without it nobody knows where they are."""
    count = 0
    for path in compile_caches(environ):
        here = inside.reach(path)
        if inside.remote(path):
            return None
        if not os.path.isdir(here):
            continue
        if not os.access(here, os.R_OK | os.X_OK):
            return None
        for _, folders, names in os.walk(here):
            count += len(names)
            if count >= _COUNTED_FILES or len(folders) > _COUNTED_FILES:
                return _COUNTED_FILES
    return count


def compile_caches(environ: Mapping[str, str]) -> list[str]:
    """Where a start with this environment keeps compiled kernels and graphs."""
    home = environ.get("HOME") or "/root"
    user = environ.get("USER") or environ.get("LOGNAME") or os.path.basename(home)
    return [environ.get(variable) or path.replace("~", home, 1).replace("USER", user) for variable, path in _FILLED]


def telling(environ: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The settings that change how a start goes, by name, secrets masked."""
    return tuple(
        (name, MASK if is_secret_name(name) else safe(value, _VALUE_LIMIT))
        for name, value in sorted(environ.items())
        if name.startswith(_PREFIXES) or name in _NAMES
    )


def cached_share(folder: str) -> float | None:
    """Share of the model's weight files that the page cache holds; None: no files, or the kernel does not tell."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith((".safetensors", ".bin", ".gguf")))
    except OSError:
        return None
    held = total = 0
    for name in names[:_LOOKED_FILES]:
        try:
            pages = _resident(os.path.join(folder, name))
        except (OSError, ValueError, AttributeError):
            continue
        held += pages[0]
        total += pages[1]
    return round(held / total, 3) if total else None


def _resident(path: str) -> tuple[int, int]:
    """(pages in the page cache, pages), by mincore(2). Since Linux 5.2 only for files that we own or may write:
    for others it would call every page cached."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        length = min(status.st_size, _LOOKED_BYTES)
        if length == 0 or not (status.st_uid == os.geteuid() or os.geteuid() == 0 or os.access(path, os.W_OK)):
            return 0, 0
        with mmap.mmap(fd, length, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
            return _ask(mapped, length)
    finally:
        os.close(fd)


def _ask(mapped: mmap.mmap, length: int) -> tuple[int, int]:
    import ctypes

    count = -(-length // mmap.PAGESIZE)
    vector = (ctypes.c_ubyte * count)()
    view = (ctypes.c_char * length).from_buffer(mapped)  # private and never written: needed for the address alone
    try:
        if ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(length), vector
        ):
            raise OSError(ctypes.get_errno(), "mincore")
    finally:
        del view
    return sum(one & 1 for one in bytes(vector)), count


def _is_folder(inside: inner.Inside, path: str) -> bool:
    """A folder on a remote file system is taken at its word: asking might never return."""
    return inside.remote(path) or os.path.isdir(inside.reach(path))
