import pytest

from tests.real import measured, server


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Real tests run only when asked for by ``-m real``, and only where a server is installed."""
    asked = "real" in (config.getoption("-m") or "")
    for item in items:
        if "tests/real/" not in str(item.path):
            continue
        item.add_marker(pytest.mark.real)
        item.add_marker(pytest.mark.timeout(480))
        if not asked:
            item.add_marker(pytest.mark.skip(reason="a real server takes minutes: make test-real"))
        elif not server.INSTALLED:
            item.add_marker(pytest.mark.skip(reason=server.HOW))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of seconds from each fault to the verdict."""
    if measured.ROWS:
        terminalreporter.section("seconds from the fault to the verdict")
        for line in measured.table():
            terminalreporter.write_line(line)
