"""Servers in a row, each in the place of the one before, under the real probes, engine and screen: nothing of those that
are gone is left. ``python -m benchmarks.soak`` is the long form; ``-m soak`` plays it for a minute."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.widget import Widget

from sgmon.settings import Settings
from tests.discovery.test_find import LAUNCH
from tests.faults.screen import Screen
from tests.faults.watching import Watch, watching
from tests.faults.world import log_lines
from tests.proc.fake import FakeProc

#: caches fill with the first ones; of what is kept of each of the others there would be so many more
FIRST, MORE, ROWS = 3, 5, 3
#: kept on purpose, and bounded: the history of verdicts
HISTORY = "sgmon.model.verdict.VerdictChange"
OURS = ("sgmon.", "tui_app.", "widgets.")


class Servers:
    """One server after the other in a fake /proc, which all write the same log, rotated and truncated by turns."""

    def __init__(self, folder: Path) -> None:
        self.fake = FakeProc(folder)
        self.log = folder / "server.log"
        self.number = 0

    def replace(self) -> int:
        """The pid of the next launcher; its predecessor is gone."""
        for pid in range(self.number * 100, self.number * 100 + 3):
            if self.number:
                self.fake.remove(pid)
        self.number += 1
        if self.number % 2 and self.log.exists():
            self.log.rename(self.log.with_suffix(".log.1"))
        self.log.write_text(log_lines())
        pid, fds = self.number * 100, {1: str(self.log), 2: str(self.log)}
        self.fake.add(pid, [*LAUNCH, "--tp", "2", "--port", "1"], fds=fds)
        for rank in (0, 1):
            self.fake.add(pid + 1 + rank, f"sglang::scheduler_TP{rank}", ppid=pid, fds=fds)
        return pid


class Held:
    """What this process holds after garbage was collected."""

    def __init__(self) -> None:
        gc.collect()
        objects = gc.get_objects()
        self.number = {
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
            "widgets": sum(isinstance(one, Widget) for one in objects),
        }
        names = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in objects)
        self.types = Counter({name: n for name, n in names.items() if name.startswith(OURS) and name != HISTORY})

    def beyond(self, before: Held) -> dict[str, int]:
        """What there is more of: descriptors, threads, widgets; records of our own, one for each server since."""
        more = {name: n - before.number[name] for name, n in self.number.items()}
        grown = {name: n for name, n in (self.types - before.types).items() if n >= MORE}
        return grown | {name: n for name, n in more.items() if n > 0}


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen()
    yield made
    made.close()


def seen(watch: Watch, pid: int) -> None:
    """This server stands on the screen, and a page of it was opened and closed."""
    watch.until(lambda json: json["server"] and json["server"]["pid"] == pid and len(json["ranks"]) == 3)
    watch.until(lambda json: json["log"] and json["log"]["lines"] == 5)
    watch.shows(str(pid), "TP1")
    watch.screen.press("v")
    watch.shows("because")
    watch.screen.press("escape")
    watch.shows(" 3 workers ")


def test_nothing_of_a_server_that_was_replaced_is_left(tmp_path: Path, screen: Screen) -> None:
    """What is left of each server grows with each row of them; caches and copies of the moment do not."""
    servers = Servers(tmp_path)
    with watching(screen, Settings(proc_root=str(servers.fake), interval_s=0.1)) as watch:
        for _ in range(FIRST):
            seen(watch, servers.replace())
        grown: list[dict[str, int]] = []
        for _ in range(ROWS):
            before = Held()
            for _ in range(MORE):
                seen(watch, servers.replace())
            grown.append(growth(before))
            if not grown[-1]:
                break
        assert not grown[-1], grown
        assert watch.snapshot.restarts == FIRST + MORE * len(grown) - 1


def growth(before: Held, within_s: float = 5.0) -> dict[str, int]:
    """What there is more of than before, once nothing more is given back."""
    end = time.monotonic() + within_s
    while (found := Held().beyond(before)) and time.monotonic() < end:
        time.sleep(0.2)
    return found
