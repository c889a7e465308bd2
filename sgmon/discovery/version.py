"""The version of the package that the server runs, read from file names, never imported."""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

from sgmon.discovery.inner import Inside
from sgmon.patterns import regex
from sgmon.proc import maps, stat
from sgmon.text import without_prefix, without_suffix

_VERSION_LINE = regex(r"^\s*(?:__version__|version)\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


class Version(NamedTuple):
    """number "" when it was not found; ``source`` says where it was read, or where was looked."""

    number: str = ""
    source: str = ""
    site_packages: str = ""


def find(inside: Inside, package: str, argv: tuple[str, ...], environ: dict[str, str] | None) -> Version:
    """Looks where that Python looks: PYTHONPATH, what it has mapped, its venv and prefix, its working directory."""
    looked = []
    for folder in folders(inside, argv, environ or {}):
        found = _in_folder(inside, package, folder)
        if found is not None:
            return found
        looked.append(folder)
    return Version(source="not found in " + ", ".join(looked[:4]) if looked else "no Python installation found")


def folders(inside: Inside, argv: tuple[str, ...], environ: dict[str, str]) -> list[str]:
    """Candidate folders as the server sees them, most telling first."""
    found: dict[str, None] = {}
    for entry in environ.get("PYTHONPATH", "").split(":"):
        if entry:
            found.setdefault(entry)
    try:
        for folder in maps.site_packages(maps.read(inside.root, inside.pid)):
            found.setdefault(folder)
    except OSError:
        pass
    for prefix in _prefixes(inside, argv, environ):
        for lib in ("lib", "lib64", "local/lib"):
            for name in inside.listing(f"{prefix}/{lib}"):
                if re.fullmatch(r"(?:python|pypy)3?(?:\.\d+)?t?", name):
                    found.setdefault(f"{prefix}/{lib}/{name}/site-packages")
                    found.setdefault(f"{prefix}/{lib}/{name}/dist-packages")
    if inside.cwd:
        found.setdefault(inside.cwd)  # `python -m` puts it first, but it seldom holds the package
        found.setdefault(f"{inside.cwd}/python")
    return list(found)


def _prefixes(inside: Inside, argv: tuple[str, ...], environ: dict[str, str]) -> list[str]:
    """The venv of argv[0] (pyvenv.cfg beside its bin), VIRTUAL_ENV, then the prefix of the real executable."""
    found: dict[str, None] = {}
    program = argv[0] if argv else ""
    if program and "::" not in program and " " not in program:
        if "/" in program:
            path = program if program.startswith("/") else os.path.normpath(f"{inside.cwd}/{program}")
            found.setdefault(os.path.dirname(os.path.dirname(path)))
        else:
            for folder in environ.get("PATH", "").split(":"):
                if folder.startswith("/") and inside.has(f"{folder}/{program}"):
                    found.setdefault(os.path.dirname(folder))
                    break
    if environ.get("VIRTUAL_ENV", "").startswith("/"):
        found.setdefault(environ["VIRTUAL_ENV"].rstrip("/"))
    try:
        exe = without_suffix(os.readlink(f"{inside.root}/{inside.pid}/exe"), " (deleted)")
        found.setdefault(os.path.dirname(os.path.dirname(exe)))
    except OSError:
        pass
    return list(found)


def _in_folder(inside: Inside, package: str, folder: str) -> Version | None:
    for name in inside.listing(folder):
        match = re.match(rf"{re.escape(package)}-(\d[^-]*)\.dist-info$", name)
        if match:
            source = f"{folder}/{name}"
            editable = _editable(inside, source)
            return Version(match[1], f"{source}{editable}", folder)
    if not inside.has(f"{folder}/{package}/__init__.py"):
        return None
    for name in ("version.py", "_version.py"):
        match = _VERSION_LINE.search(inside.text(f"{folder}/{package}/{name}"))
        if match:
            return Version(match[1], f"{folder}/{package}/{name} (source checkout)", folder)
    return Version(source=f"{folder}/{package} has no version file (source checkout)", site_packages=folder)


def _editable(inside: Inside, dist_info: str) -> str:
    """ " (editable install from DIR)" as PEP 610's direct_url.json tells it, else ""."""
    try:
        found = json.loads(inside.text(f"{dist_info}/direct_url.json") or "{}")
        if found.get("dir_info", {}).get("editable"):
            return f" (editable install from {without_prefix(str(found.get('url', '')), 'file://')})"
    except (ValueError, AttributeError):
        pass
    return ""


def started_epoch(root: str, start_ticks: int) -> float | None:
    """Wall clock at which a process started, seconds."""
    boot = stat.boot_epoch(root)
    return None if boot is None else boot + start_ticks / stat.HZ
