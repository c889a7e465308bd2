"""Whether mypy refuses a mutant: its daemon over a copy of the sources, of which one file is changed at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.mutants.mutations import Mutant

#: Of a check, on a loaded machine; the first one reads everything.
_LIMIT_S = 600.0


class Types:
    """mypy as ``make check`` runs it."""

    def __init__(self, copy: Path) -> None:
        self._copy = copy

    def refuses(self, mutant: Mutant) -> bool:
        file = self._copy / mutant.path
        kept = file.read_text()
        file.write_text(mutant.make())
        try:
            return not self.accepts()
        finally:
            file.write_text(kept)

    def accepts(self) -> bool:
        """The copy as it is now."""
        options = ["run", "--", "-p", "sgmon", "--config-file", "pyproject.toml"]
        return subprocess.run([*_DAEMON, *options], cwd=self._copy, **_QUIET).returncode == 0  # type: ignore[call-overload]


_DAEMON = (sys.executable, "-m", "mypy.dmypy")
_QUIET = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.DEVNULL,
    "timeout": _LIMIT_S,
}


@contextmanager
def types(copy: Path) -> Iterator[Types]:
    """copy: a folder for the copy, made anew. mypy must accept the sources as they are."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree("sgmon", copy / "sgmon", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy("pyproject.toml", copy)
    found = Types(copy)
    try:
        if not found.accepts():
            raise SystemExit("mypy refuses the sources without a change")
        yield found
    finally:
        subprocess.run([*_DAEMON, "stop"], cwd=copy, **_QUIET)  # type: ignore[call-overload]
