"""Locks of builds that nobody holds any more, in the known caches of compiled kernels."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

from sgmon import paths
from sgmon.collect.compile_caches import CACHES
from sgmon.proc import locks

#: a build lock younger than this may belong to a build that is going on
STALE_LOCK_S = 300.0
LOOKED_AT_MOST = 20_000
#: where a build may have left a lock: of Triton its whole folder
_LOCKING = (("TRITON_CACHE_DIR", "~/.triton"), *CACHES)


#: tvm-ffi locks its file "lock" by flock and leaves it there (tvm_ffi/utils/lockfile.py, 0.1.11)
_FLOCKED = frozenset({"TVM_FFI_CACHE_DIR"})


def folders(environ: Mapping[str, str], *, without: frozenset[str] = frozenset()) -> list[str]:
    """The caches of compiled kernels, by the start's environment. without: variables of those that are left out."""
    home = environ.get("HOME") or str(paths.home())
    return [
        environ.get(variable) or default.replace("~", home, 1)
        for variable, default in _LOCKING
        if variable not in without
    ]


def stale(root: str, environ: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    """(path, age in seconds) of files that are locks by being there (torch's FileBaton), and that no live process
    holds or has just made. flock files stay behind after every build and harm nobody."""
    held = _held(root)
    found = []
    for path in _files(folders(environ, without=_FLOCKED)):
        try:
            status = os.stat(path)
        except OSError:
            continue
        age_s = time.time() - status.st_mtime
        if status.st_ino not in held and age_s > STALE_LOCK_S:
            found.append((path, round(age_s, -1)))
    return tuple(found)


def _files(caches: list[str]) -> Iterator[str]:
    looked = 0
    for folder in caches:
        for where, _, files in os.walk(folder):
            looked += len(files) + 1
            if looked > LOOKED_AT_MOST:
                return
            if "lock" in files:
                yield f"{where}/lock"


def _held(root: str) -> frozenset[int]:
    try:
        return frozenset(int(row.file.rsplit(":", 1)[-1]) for row in locks.read(root) if not row.waiting)
    except (OSError, ValueError):
        return frozenset()
