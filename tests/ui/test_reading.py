"""The thread that reads the terminal: it sleeps until something comes, and ends when it is told to."""

from __future__ import annotations

import errno
import os
import pty
import queue
import select
import threading
from collections.abc import Iterator

import pytest
from textual import events
from textual.message import Message

from tui_app.output import reading
from tui_app.output.reading import WakingEvent, read_terminal

DEADLINE_S = 20.0


class Terminal:
    """The thread on a pipe; timeouts: of each wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.timeouts: list[float | None] = []
        self.messages: queue.Queue[Message] = queue.Queue()
        self.stop = WakingEvent()
        fd, self.keys = os.pipe()
        poll, timeouts = select.poll, self.timeouts

        class Poll:
            def __init__(self) -> None:
                self._poll = poll()
                self.register, self.unregister = self._poll.register, self._poll.unregister

            def poll(self, timeout: float | None) -> list[tuple[int, int]]:
                timeouts.append(timeout)
                return self._poll.poll(timeout)

        monkeypatch.setattr(reading.select, "poll", Poll)
        self.thread = threading.Thread(
            target=read_terminal, args=(fd, self.stop, self.messages.put, False), daemon=True
        )
        self.thread.start()

    def key(self) -> str:
        message = self.messages.get(timeout=DEADLINE_S)
        assert isinstance(message, events.Key)
        return message.key


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal(monkeypatch)
    yield made
    made.stop.set()
    made.thread.join(DEADLINE_S)


def test_keys_come_and_the_thread_sleeps_without_a_limit_in_between(terminal: Terminal) -> None:
    os.write(terminal.keys, "qä".encode())
    os.write(terminal.keys, b"\x1b[A")
    assert [terminal.key() for _ in range(3)] == ["q", "ä", "up"]
    assert terminal.timeouts[0] is None
    assert all(one is None for one in terminal.timeouts)


def test_a_lone_esc_is_a_key_after_a_moment(terminal: Terminal) -> None:
    os.write(terminal.keys, b"\x1b")
    assert terminal.key() == "escape"
    assert any(one is not None for one in terminal.timeouts)


def test_it_ends_when_it_is_told_to_and_can_be_started_again(terminal: Terminal) -> None:
    terminal.stop.set()
    terminal.thread.join(DEADLINE_S)
    assert not terminal.thread.is_alive()
    terminal.stop.clear()
    assert not select.select([terminal.stop.fd], [], [], 0)[0]


def test_the_end_of_the_input_is_no_reason_to_spin(terminal: Terminal) -> None:
    os.close(terminal.keys)
    terminal.stop.set()
    terminal.thread.join(DEADLINE_S)
    assert not terminal.thread.is_alive()
    assert len(terminal.timeouts) <= 4


@pytest.mark.parametrize("has_error", [False, True])
def test_a_terminal_that_was_closed_is_gone(has_error: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of the two ways the kernel takes hangs on how far it is with the closing."""
    master, slave = pty.openpty()
    os.close(master)
    if has_error:

        def fail(fd: int, count: int) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(reading.os, "read", fail)
    else:
        assert os.read(slave, 1) == b""
    said: list[bool] = []
    thread = threading.Thread(
        target=lambda: said.append(read_terminal(slave, WakingEvent(), lambda _: None, False)), daemon=True
    )
    thread.start()
    thread.join(DEADLINE_S)
    assert said == [False]
    os.close(slave)
