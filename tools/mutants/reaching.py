"""Which tests run which line: a plugin of pytest that keeps it (coverage.py's contexts), and its reader.

``python -m pytest -p tools.mutants.reaching --reaching FILE tests/log``. Failed tests are left out.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

#: in the name of tests against kept texts, which look at everything at once
KEPT = "as_it_was"


class _Keeper:
    def __init__(self, file: str) -> None:
        self.file = file
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.coverage = coverage.Coverage(data_file=file, source=["sgmon"], config_file=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_unconfigure(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        passed = {test: seconds for test, seconds in self.seconds.items() if test not in self.failed}
        Path(f"{self.file}.seconds").write_text(json.dumps(passed))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reaching", metavar="FILE", help="keep which test runs which line in FILE")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--reaching"):
        config.pluginmanager.register(_Keeper(file))


class Reaching:
    """The tests of each line, with the seconds each took."""

    def __init__(self, kept: list[Path]) -> None:
        self.seconds: dict[str, float] = {}
        self._files: dict[str, list[coverage.CoverageData]] = defaultdict(list)
        self._lines: dict[str, dict[int, set[str]]] = {}
        for file in kept:
            self.seconds |= json.loads(Path(f"{file}.seconds").read_text())
            data = coverage.CoverageData(basename=str(file))
            data.read()
            for path in data.measured_files():
                self._files[path].append(data)

    def tests(self, path: Path, line: int, *, anywhere: bool) -> list[str]:
        """The tests that run the line, the fastest of each test file first, then kept texts, the others.

        A line within a statement may be kept as the statement's: the nearest line before it that a test runs counts.
        anywhere: those that run another line of the file follow: what is read once, and what is kept from the first
        call on, shows in no test but the first. Of a file that is read at the import alone: those of the files beside
        and above it."""
        of_line = self._of_file(str(path.resolve()))
        if anywhere and not any(of_line.values()):
            beside = {str(one.resolve()) for folder in path.resolve().parents[:2] for one in folder.glob("*.py")}
            return self._ordered(set().union(*(tests for one in beside for tests in self._of_file(one).values())))
        nearest = max((at for at, tests in of_line.items() if tests and at <= line), default=line)
        near = self._ordered(of_line[nearest])
        return near + (self._ordered(set().union(*of_line.values()) - set(near)) if anywhere else [])

    def _of_file(self, path: str) -> dict[int, set[str]]:
        """The tests of each line; kept, for reading takes long."""
        if path not in self._lines:
            found: dict[int, set[str]] = defaultdict(set)
            for data in self._files.get(path, ()):
                for at, contexts in data.contexts_by_lineno(path).items():
                    found[at].update(test for test in contexts if test in self.seconds)
            self._lines[path] = found
        return self._lines[path]

    def _ordered(self, tests: set[str]) -> list[str]:
        by_time = sorted(
            (test for test in tests if test in self.seconds), key=lambda test: (self.seconds[test], test)
        )
        seen: dict[str, str] = {}
        for test in by_time:
            seen.setdefault(test.partition("::")[0], test)
        first = set(seen.values())
        rest = [test for test in by_time if test not in first]
        return [*seen.values(), *sorted(rest, key=lambda test: KEPT not in test)]
