"""The collector's archive: the part of this package that runs on a far machine, made at run time, kept in memory.

``FILES`` travel as they are; they hold to Python 3.8 (``make check``). Libraries of pure Python that they use come
from this installation; of those that are not pure Python, replacements come along.
"""

from __future__ import annotations

import importlib.util
import io
import os
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from sgmon.paths import STAND_INS

_ROOT = Path(__file__).resolve().parents[2]
#: packages and modules of ours, by their path below the root
FILES = (
    *(
        "sgmon/__init__.py",
        "sgmon/compressed.py",
        "sgmon/imports.py",
        "sgmon/json_text.py",
        "sgmon/text.py",
        "sgmon/units.py",
        "sgmon/settings.py",
        "sgmon/paths.py",
        "sgmon/patterns.py",
        "sgmon/versions.py",
    ),
    *("sgmon/model", "sgmon/proc", "sgmon/discovery", "sgmon/collect", "sgmon/servers"),
    *("sgmon/analyse/__init__.py", "sgmon/analyse/stacks/__init__.py", "sgmon/analyse/stacks/names.py"),
    *("sgmon/analyse/stacks/parse.py", "sgmon/analyse/stacks/ras.py", "sgmon/analyse/stacks/ras_forms.py"),
    *("sgmon/analyse/stacks/refusals.py", "sgmon/analyse/stacks/rules.py"),
    *("sgmon/remote/__init__.py", "sgmon/remote/collector.py", "sgmon/remote/outlet.py", "sgmon/remote/wire.py"),
)
#: libraries of pure Python
LIBRARIES = ("pynvml", "yaml")


def our_files() -> list[Path]:
    """The Python files of ours that travel, replacements included."""
    found = [_ROOT / "sgmon" / "remote" / "bootstrap.py"]
    for name in FILES:
        path = _ROOT / name
        found += [path] if path.is_file() else path.rglob("*.py")
    found += (_ROOT / "sgmon" / "remote" / STAND_INS).rglob("*.py")
    return sorted(set(found))


@lru_cache(maxsize=1)
def archive() -> bytes:
    """The zip archive, deflated; made once."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, data in _entries():
            packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@lru_cache(maxsize=1)
def bootstrap() -> bytes:
    """The program that receives the archive and starts it."""
    return (_ROOT / "sgmon" / "remote" / "bootstrap.py").read_bytes()


def _entries() -> Iterator[tuple[str, bytes]]:
    """(name in the archive, content)."""
    remote = _ROOT / "sgmon" / "remote"
    for path in our_files():
        if path.parent == remote and path.name == "bootstrap.py":
            continue
        below = path.relative_to(remote) if remote / STAND_INS in path.parents else path.relative_to(_ROOT)
        if str(below) != f"{STAND_INS}/__init__.py":
            yield str(below), path.read_bytes()
    for module in LIBRARIES:
        yield from _library(module)


def _library(module: str) -> Iterator[tuple[str, bytes]]:
    """The files of a library; none where it is not installed."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        yield origin.name, origin.read_bytes()
        return
    for name in sorted(os.listdir(origin.parent)):
        path = origin.parent / name
        if path.suffix == ".py" and path.is_file():
            yield f"{module}/{name}", path.read_bytes()


if __name__ == "__main__":
    print("\n".join(str(path.relative_to(Path.cwd())) for path in our_files()))
