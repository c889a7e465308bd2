"""Runs tests on a mutant: a forked process whose import system gives the changed source of one file."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType

import pytest

from tools.mutants.mutations import Mutant

#: Imported before the fork, so that no mutant waits for them. Nothing of ours may be among them.
_BEFORE = ("asyncio", "hypothesis.strategies", "msgspec", "psutil", "pytest_asyncio.plugin", "pytest_timeout", "yaml")


class _Changed(importlib.machinery.SourceFileLoader):
    """Loads a file with another text than it has."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the mutated module, and leaves all others to Python."""

    def __init__(self, mutant: Mutant) -> None:
        parts = Path(mutant.path).with_suffix("").parts
        self._package = parts[-1] == "__init__"
        self._name = ".".join(parts[:-1] if self._package else parts)
        self._path = str(Path(mutant.path).resolve())
        self._source = mutant.make()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        places = [str(Path(self._path).parent)] if self._package else None
        loader = _Changed(name, self._path, self._source)
        return importlib.util.spec_from_file_location(
            name, self._path, loader=loader, submodule_search_locations=places
        )


def prepare() -> None:
    for name in _BEFORE:
        importlib.import_module(name)
    ours = [name for name in sys.modules if name.partition(".")[0] in ("sgmon", "tests", "tui_app", "widgets")]
    assert not ours, f"imported before the fork: {ours}"


class Failure:
    """A plugin of pytest that writes the first test that failed into a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.failed = ""
        file.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
            self._file.write_text(report.nodeid)


def failure_file(said: Path) -> Path:
    """Where the process of a mutant writes the test that failed."""
    return said.with_suffix(".failed")


def run(mutant: Mutant | None, tests: Sequence[str], limit_s: float, said: Path) -> tuple[str, str]:
    """What became of the mutant (``outcome_of``) and the test that failed ("": none, or before any test).

    None runs the tests without a change. said: what pytest wrote."""
    failure_file(said).write_text("")
    child = os.fork()
    if not child:
        _run_here(mutant, tests, said)
    return outcome_of(child, limit_s), failure_file(said).read_text()


def outcome_of(child: int, limit_s: float) -> str:
    """``killed`` if the process ended with another code than 0, else ``survived``; ``hung``: ended after limit_s."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return "killed" if status else "survived"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def _run_here(mutant: Mutant | None, tests: Sequence[str], said: Path) -> None:
    """Ends the process with pytest's code."""
    code = 99
    try:
        os.setsid()
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if mutant:
            sys.meta_path.insert(0, _Finder(mutant))  # type: ignore[arg-type]
        options = ["-x", "-q", "--tb=line", "-p", "no:xdist", "-p", "no:randomly"]
        code = pytest.main([*options, *tests], plugins=[Failure(failure_file(said))])
    finally:
        os._exit(code)
