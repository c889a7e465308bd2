"""The whole of it in a pty: simulated server, probes, engine, screen, keys, quitting."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.terminal import LIMIT_S, Terminal
from tests.waiting import eventually

ALTERNATE_OFF = b"\x1b[?1049l"
MOUSE_OFF = b"\x1b[?1000l"


def test_a_stuck_rank_is_named_with_what_to_do_and_quitting_leaves_two_lines() -> None:
    """On a small screen."""
    with Terminal("demo", "stopped", "--speed", "4", columns=60, rows=15) as terminal:
        terminal.until(_names_the_rank)
        _quit(terminal)


def test_the_same_on_a_large_screen_and_stacks_come_at_a_key_press_and_the_way_back() -> None:
    with Terminal("demo", "stopped", "--speed", "4", columns=120, rows=40) as terminal:
        terminal.until(_names_the_rank)
        terminal.press("D")
        text = terminal.until(lambda text: "load_model" in text)
        assert "TP1" in text
        terminal.press("qq")
        terminal.until(lambda text: "workers" in text and "load_model" not in text)
        terminal.press("?")
        terminal.until(lambda text: "this help" in text)
        terminal.press("q")
        terminal.until(lambda text: "this help" not in text)
        _quit(terminal)


def _names_the_rank(text: str) -> bool:
    return "STOPPED" in text.split("\n")[0] and "TP1" in text.split("\n")[0] and "kill -CONT" in text


def _quit(terminal: Terminal) -> None:
    terminal.press("qq")
    assert terminal.wait() == 0
    assert ALTERNATE_OFF in terminal.raw
    tail = bytes(terminal.raw).split(ALTERNATE_OFF)[-1].decode(errors="replace")
    said = [line for line in tail.replace("\r", "").split("\n") if line.strip("\x1b[]?0123456789hlm;= >")]
    assert any("TP1" in line for line in said), said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back_and_ends_the_simulated_server(number: int) -> None:
    with Terminal("demo", "healthy", "--speed", "4") as terminal:
        terminal.until(lambda text: "PROGRESSING" in text)
        children = _descendants(terminal.pid)
        assert children
        terminal.signal(number)
        assert terminal.wait() != 0
        assert ALTERNATE_OFF in terminal.raw
        _until_gone(children)


def test_a_killed_sgmon_leaves_no_simulated_server_behind() -> None:
    with Terminal("demo", "healthy", "--speed", "4") as terminal:
        terminal.until(lambda text: "PROGRESSING" in text)
        children = _descendants(terminal.pid)
        terminal.signal(signal.SIGKILL)
        terminal.wait()
        _until_gone(children)


def _descendants(pid: int) -> list[int]:
    found, todo = [], [pid]
    while todo:
        try:
            for task in Path(f"/proc/{todo.pop()}/task").iterdir():
                more = [int(word) for word in (task / "children").read_text().split()]
                found += more
                todo += more
        except OSError:
            continue
    return found


def _until_gone(pids: list[int]) -> None:
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in pids), LIMIT_S, lambda: pids)


def test_a_command_that_ends_before_it_is_a_server_is_said_with_its_code(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    words = ["-c", "import sys; print('no module named sglang'); sys.exit(7)"]
    with Terminal("run", "--log", str(log), "--", sys.executable, *words) as terminal:
        terminal.until(lambda text: "CRASHED" in text and "ended with code 7" in text)
        assert f"tail -n 40 {log}"[:20] in terminal.text()
        terminal.press("qq")
        assert terminal.wait() == 7
