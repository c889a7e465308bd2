"""From a key to the screen, on a healthy server and while every probe hangs, beside a hello-world Textual app."""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from benchmarks import server
from benchmarks.keys import HELLO, HUNG_S
from benchmarks.registry import Group, Options, Round, Values, rows_of
from benchmarks.terminal import Session, cpu_of

PRESSES = 15


@contextmanager
def prepare(options: Options) -> Iterator[Round]:
    with ExitStack() as stack:
        pid = str(stack.enter_context(server.serving(threads=4)).pid)
        commands = {
            "hello": [sys.executable, "-c", HELLO],
            "healthy": [sys.executable, "-m", "tui_app.cli", "--pid", pid],
            "hanging": [sys.executable, "-m", "benchmarks.hanging", pid],
        }
        sessions = {name: stack.enter_context(Session(argv)) for name, argv in commands.items()}
        for name, session in sessions.items():
            if not shown(session, sessions.values()):
                raise RuntimeError(f"nothing came of {commands[name]}")
        for _ in range(round(HUNG_S / 0.1)):
            for session in sessions.values():
                session.take()
            time.sleep(0.1)
        yield lambda: press(sessions, random.Random(1))


def shown(session: Session, all_sessions: Iterable[Session]) -> bool:
    """Whether its first panel comes, within 30 s. All are read and answered; a panel that was painted before its mark
    shows it when its key is pressed."""
    until = time.monotonic() + 30
    while "▸1".encode() not in session.seen and time.monotonic() < until:
        for one in all_sessions:
            one.take()
        time.sleep(0.1)
        if time.monotonic() > until - 20:
            session.press(b"21")
    return "▸1".encode() in session.seen


def press(sessions: dict[str, Session], chance: random.Random) -> dict[str, Values]:
    """Median and most milliseconds, and median of the CPU time until then; the programs get each key in turn."""
    taken: dict[str, list[float]] = {name: [] for name in sessions}
    spent: dict[str, list[float]] = {name: [] for name in sessions}
    for number in "23451" * (PRESSES // 5):
        for name, session in sessions.items():
            session.take()
            session.forget()
            before = cpu_of(session.pid)
            pressed = time.monotonic()
            session.press(number.encode())
            seen = session.until(f"▸{number}".encode(), 10)
            taken[name].append(((seen or pressed + 10) - pressed) * 1000)
            spent[name].append((cpu_of(session.pid) - before) * 1000)
            session.idle(chance.uniform(0.02, 0.1))
    return {
        name: {"ms, median": statistics.median(ms), "ms, most": max(ms), "CPU ms": statistics.median(spent[name])}
        for name, ms in taken.items()
    }


ROWS = rows_of("keys", "healthy/hello, hanging/hello, hanging/healthy", "ms, median", "CPU ms")
GROUPS = (Group("keys", "key to screen", ROWS, prepare),)
