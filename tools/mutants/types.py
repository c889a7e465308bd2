"""Whether mypy refuses a mutant: it is run over a copy of the sources, of which one file is changed at a time. (Its
daemon keeps errors of a change that is taken back.)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
        command = [sys.executable, "-m", "mypy", "-p", "sgmon", "--config-file", "pyproject.toml"]
        ran = subprocess.run(command, cwd=self._copy, env=_ENV, **_QUIET)  # type: ignore[call-overload]
        return bool(ran.returncode == 0)

    def reads_the_copy(self) -> bool:
        """Whether a wrong type in the copy is refused: it may take them for an installed package."""
        file = self._copy / "sgmon/__init__.py"
        kept = file.read_text()
        file.write_text(f'{kept}\nwrong: int = ""\n')
        try:
            return not self.accepts()
        finally:
            file.write_text(kept)


#: mypy tells no errors of what it finds in PYTHONPATH
_ENV = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
_QUIET = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.DEVNULL,
    "timeout": _LIMIT_S,
}


def types(copy: Path) -> Types:
    """copy: a folder for the copy, made anew, with mypy's cache. mypy must accept the sources as they are."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree("sgmon", copy / "sgmon", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy("pyproject.toml", copy)
    made = Types(copy)
    if not made.accepts():
        raise SystemExit("mypy refuses the sources without a change")
    if not made.reads_the_copy():
        raise SystemExit("mypy does not read the copy of the sources")
    return made
