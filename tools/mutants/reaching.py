"""Which tests run which line: a plugin of pytest that keeps it (coverage.py's contexts), and its reader.

``python -m pytest -p tools.mutants.reaching --reaching FILE tests/log``. Failed tests are left out.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

#: where lines are changed
FOLDERS = tuple(
    Path("sgmon") / one for one in ("analyse/diagnosis", "analyse/log", "collect/logs", "remote", "servers")
)
#: test files whose fastest test is run before any kept text
FIRST = 3
#: in the name of tests against kept texts, which look at everything at once
KEPT = "as_it_was"


class _Keeper:
    def __init__(self, file: str) -> None:
        self.file = file
        self.took_s: dict[str, float] = {}
        self.work_s: dict[str, float] = {}
        self.failed: set[str] = set()
        self.coverage = coverage.Coverage(data_file=file, source=[str(one) for one in FOLDERS], config_file=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        began_s = _work_s()
        try:
            return (yield)
        finally:
            self.work_s[item.nodeid] = _work_s() - began_s
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took_s[report.nodeid] = self.took_s.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_unconfigure(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        passed = {
            test: (self.work_s[test], took_s) for test, took_s in self.took_s.items() if test not in self.failed
        }
        Path(f"{self.file}.seconds").write_text(json.dumps(passed))


def _work_s() -> float:
    """CPU seconds of this process and of its ended children: unlike the time by the clock, not of other programs."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reaching", metavar="FILE", help="keep which test runs which line in FILE")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--reaching"):
        config.pluginmanager.register(_Keeper(file))


class Reaching:
    """The tests of each line, with the seconds each took by the clock, and of CPU time."""

    def __init__(self, kept: list[Path]) -> None:
        self.took_s: dict[str, float] = {}
        self.work_s: dict[str, float] = {}
        self._files: dict[str, list[coverage.CoverageData]] = defaultdict(list)
        self._lines: dict[str, dict[int, set[str]]] = {}
        for file in kept:
            for test, (work_s, took_s) in json.loads(Path(f"{file}.seconds").read_text()).items():
                self.work_s[test], self.took_s[test] = work_s, took_s
            data = coverage.CoverageData(basename=str(file))
            data.read()
            for path in data.measured_files():
                self._files[path].append(data)

    def tests(self, path: Path, line: int, *, anywhere: bool) -> list[str]:
        """The tests that run the line: the fastest of FIRST test files, those of the file that is called after this
        one, the fastest of each other test file, kept texts, the others.

        A line within a statement may be kept as the statement's: the nearest line before it that a test runs counts.
        anywhere: those that run another line of the file follow: what is read once, and what is kept from the first
        call on, shows in no test but the first. Of a file that is read at the import alone: those of the files beside
        and above it, kept texts early."""
        named = f"/test_{path.stem}.py::"
        of_line = self._of_file(str(path.resolve()))
        if anywhere and not any(of_line.values()):
            beside = {str(one.resolve()) for folder in path.resolve().parents[:2] for one in folder.glob("*.py")}
            tests = set().union(*(tests for one in beside for tests in self._of_file(one).values()))
            return self._ordered(tests, named, kept_early=True)
        nearest = max((at for at, tests in of_line.items() if tests and at <= line), default=line)
        near = self._ordered(of_line[nearest], named)
        return near + (self._ordered(set().union(*of_line.values()) - set(near), named) if anywhere else [])

    def _of_file(self, path: str) -> dict[int, set[str]]:
        """The tests of each line; kept, for reading takes long."""
        if path not in self._lines:
            found: dict[int, set[str]] = defaultdict(set)
            for data in self._files.get(path, ()):
                for at, contexts in data.contexts_by_lineno(path).items():
                    found[at].update(test for test in contexts if test in self.work_s)
            self._lines[path] = found
        return self._lines[path]

    def _ordered(self, tests: set[str], named: str, kept_early: bool = False) -> list[str]:
        by_time = sorted((test for test in tests if test in self.work_s), key=lambda test: (self.work_s[test], test))
        seen: dict[str, str] = {}
        for test in by_time:
            seen.setdefault(test.partition("::")[0], test)
        alone, kept = list(seen.values()), [test for test in by_time if KEPT in test]
        first = [*alone[:FIRST], *(test for test in by_time if named in test)]
        then = [*kept, *alone] if kept_early else [*alone, *kept]
        return list(dict.fromkeys([*first, *then, *by_time]))
