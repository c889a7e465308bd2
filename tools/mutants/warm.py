"""Runs tests on mutants within one pytest that has collected them all: a mutant costs a fork and its tests.

Code of functions is exchanged in the forked process. What ran at import or is kept from it does not change with that:
a mutant that survives here is run once more in a process that imports it (``running``).
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tools.mutants.mutations import Mutant
from tools.mutants.running import Failure, failure_file, outcome_of

#: A mutant, its tests, the seconds after which it hangs.
Job = tuple[Mutant, Sequence[str], float]
#: Is told of a mutant, its outcome, the seconds, the test that failed.
Tell = Callable[[Mutant, str, float, str], None]
_CACHE = type(functools.cache(lambda: None))


class _Loop:
    """Takes the place of pytest's loop over the tests."""

    def __init__(self, jobs: Sequence[Job], said: Path, tell: Tell) -> None:
        self._jobs, self._said, self._tell = jobs, said, tell

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for mutant, tests, limit_s in self._jobs:
            began = time.monotonic()
            failure_file(self._said).write_text("")
            child = os.fork()
            if not child:
                self._run_here(mutant, [items[test] for test in tests if test in items])
            outcome = outcome_of(child, limit_s)
            self._tell(mutant, outcome, time.monotonic() - began, failure_file(self._said).read_text())
        return True

    def _run_here(self, mutant: Mutant, items: Sequence[pytest.Item]) -> None:
        code = 1
        try:
            os.setsid()
            failure = Failure(failure_file(self._said))
            items[0].config.pluginmanager.register(failure)
            exchange(mutant)
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if failure.failed:
                    break
            code = int(bool(failure.failed))
        finally:
            os._exit(code)


def exchange(mutant: Mutant) -> None:
    """Gives the functions of the file their changed code, and empties all caches of functions.

    What is imported at its first use is imported here."""
    importlib.import_module(".".join(Path(mutant.path).with_suffix("").parts).removesuffix(".__init__"))
    path = str(Path(mutant.path).resolve())
    changed = {code.co_qualname: code for code in _codes(compile(mutant.make(), path, "exec", dont_inherit=True))}
    gc.unfreeze()  # what tests/conftest.py has frozen is not listed
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == path:
            new = changed.get(thing.__code__.co_qualname)
            if new and new != thing.__code__ and new.co_freevars == thing.__code__.co_freevars:
                thing.__code__ = new
        elif isinstance(thing, _CACHE) and str(thing.__module__).startswith("sgmon"):
            thing.cache_clear()


def _codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)


def run(jobs: Sequence[Job], said: Path, tell: Tell) -> None:
    """Runs all of them, in a forked process; tell is called there."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        files = sorted({test.partition("::")[0] for _, tests, _ in jobs for test in tests})
        pytest.main(["-q", "-p", "no:xdist", *files], plugins=[_Loop(jobs, said, tell)])
    finally:
        os._exit(0)
