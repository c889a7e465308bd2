import pytest

from tests.real import measured, server
from tests.real.vllm import server as vllm


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Real tests run only when asked for by ``-m real``, and only where their server is installed."""
    asked = "real" in (config.getoption("-m") or "")
    for item in items:
        if "tests/real/" not in str(item.path):
            continue
        is_vllm = "tests/real/vllm/" in str(item.path)
        item.add_marker(pytest.mark.real)
        item.add_marker(pytest.mark.timeout(900 if is_vllm else 480))
        if not asked:
            item.add_marker(pytest.mark.skip(reason="a real server takes minutes: make test-real"))
        elif not (vllm if is_vllm else server).INSTALLED:
            item.add_marker(pytest.mark.skip(reason=(vllm if is_vllm else server).HOW))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of seconds from each fault to the verdict."""
    if measured.ROWS:
        terminalreporter.section("seconds from the fault to the verdict")
        for line in measured.table():
            terminalreporter.write_line(line)
