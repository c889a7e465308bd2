"""The programs that sgmon is measured against: where they are, and how they get here.

``lnav``, ``btop`` and ``less`` come from the system's packages (apt, as root); ``nvitop`` and ``toolong`` from PyPI, each
into a virtual environment of its own below the cache folder, so that their versions of Textual stay theirs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

import platformdirs

#: program -> its Debian package
_APT = {"lnav": "lnav", "btop": "btop", "less": "less", "grep": "grep"}
#: program -> its package on PyPI
_PYPI = {"nvitop": "nvitop", "tl": "toolong"}
INSTALL_S = 300.0


class MissingPeerError(Exception):
    """A peer is not here and could not be installed; says which and why."""


@cache
def find(program: str) -> str:
    """Path of a peer, installed if need be. Raises MissingPeerError."""
    there = shutil.which(program)
    if there is None and program in _PYPI:
        return _from_pypi(program, _PYPI[program])
    if there is None:
        _from_apt(program)
        there = shutil.which(program)
    if there is None:
        raise MissingPeerError(f"{program} is not installed, and its package has no program of this name")
    return there


@cache
def pyspy() -> str:
    """Path of py-spy, which sgmon itself depends on."""
    from sgmon.collect.probes.pyspy_dump import find_pyspy

    there = find_pyspy()
    if there is None:
        raise MissingPeerError("py-spy is not installed")
    return there


def in_utf8(*argv: str) -> list[str]:
    """A command in a UTF-8 locale: lnav and btop refuse or draw less without one."""
    return ["env", "LC_ALL=C.UTF-8", *argv]


def _from_pypi(program: str, package: str) -> str:
    folder = Path(platformdirs.user_cache_dir("sgmon-benchmarks")) / package
    path = folder / "bin" / program
    if not path.exists():
        print(f"installing {package} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        _install([str(folder / "bin" / "pip"), "install", "-q", package], program)
    return str(path)


def _from_apt(program: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        package = _APT.get(program, program)
        raise MissingPeerError(f"{program} is not installed: install the package {package}")
    print(f"installing {program} with apt-get", file=sys.stderr)
    _install(["apt-get", "install", "-y", "-q", _APT.get(program, program)], program)


def _install(argv: list[str], program: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=INSTALL_S)
    except (OSError, subprocess.TimeoutExpired) as err:
        raise MissingPeerError(f"{program} could not be installed: {err}") from err
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no words"])[-1]
        raise MissingPeerError(f"{program} could not be installed: {last}")


def versions() -> dict[str, str]:
    """Peer -> its version, of those that are here."""
    asked = {"lnav": ["lnav", "-V"], "btop": ["btop", "-v"], "less": ["less", "-V"], "grep": ["grep", "-V"]}
    found = {}
    for name, argv in asked.items():
        if shutil.which(argv[0]):
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10)
            number = re.search(r"\d+(\.\d+)*", done.stdout)
            found[name] = number[0] if number else "?"
    for program, package in _PYPI.items():
        folder = Path(platformdirs.user_cache_dir("sgmon-benchmarks")) / package
        for info in folder.glob(f"lib/python*/site-packages/{package}-*.dist-info"):
            found[program] = info.name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return found
