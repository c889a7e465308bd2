from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sgmon.proc import files, stat
from tests.proc.fake import FakeProc, stat_line


@pytest.mark.parametrize("comm", ["python", "a b", "a) b", "((", ") S 1 (", "größe", "x\ny", ""])
def test_comm_may_hold_anything(comm):
    seen = stat.parse(stat_line(42, comm, "D", 7, 3, 999, 250, 768))
    assert (seen.pid, seen.comm, seen.state, seen.ppid, seen.threads) == (42, comm, "D", 7, 3)
    assert (seen.start_ticks, seen.exit_status) == (999, 768)
    assert seen.cpu_s == 250 / stat.HZ


def test_bytes_that_are_no_utf8_are_replaced():
    assert stat.parse(stat_line(1, "\udcff\udcfe", "S", 0, 1, 1)).comm == "��"


@pytest.mark.parametrize("torn", [b"", b"5 (sleep) S 1 2"])
def test_a_torn_line_is_read_once_more(tmp_path, monkeypatch, torn):
    fake = FakeProc(tmp_path)
    fake.add(5, ["sleep"])
    whole, answers = files.small(f"{fake}/5/stat"), [torn]
    monkeypatch.setattr(stat.files, "small", lambda path: answers.pop() if answers else whole)
    assert stat.read(str(fake), 5).comm == "sleep"


@pytest.mark.parametrize("torn", [b"", b"5 (sleep) S 1 2"])
def test_a_line_that_stays_torn_is_no_end(tmp_path, torn):
    fake = FakeProc(tmp_path)
    fake.add(5, ["sleep"])
    (fake.root / "5" / "stat").write_bytes(torn)
    with pytest.raises(OSError) as seen:
        stat.read(str(fake), 5)
    assert not files.is_gone(seen.value) and not files.is_own_limit(seen.value)


def test_our_own_process():
    seen = stat.read("/proc", os.getpid())
    assert seen.pid == os.getpid() and seen.ppid == os.getppid() and seen.state == "R"
    assert stat.cmdline("/proc", os.getpid())


def test_cmdline_of_titles_and_kernel_threads(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(5, "sglang::scheduler_TP0   ")
    fake.add(6, [])
    fake.add(7, ["python", "-c", "", "x"])
    assert stat.cmdline(str(fake), 5) == ("sglang::scheduler_TP0",)
    assert stat.cmdline(str(fake), 6) == ()
    assert stat.cmdline(str(fake), 7) == ("python", "-c", "", "x")


def test_the_tree_of_the_tests_has_no_half_of_a_process(tmp_path: Path) -> None:
    """A reader beside a writer, as a watch is: what has a folder has a whole stat, while it comes and when it changes."""
    fake, ended, halves = FakeProc(tmp_path), threading.Event(), []

    def look() -> None:
        while not ended.is_set():
            lines = [(fake.root / name / "stat").read_bytes() for name in os.listdir(fake.root) if name.isdigit()]
            halves.extend(line for line in lines if not line.endswith(b"\n"))

    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(look)
        for pid in range(2, 12):
            for title in ("one", "two", "three"):
                fake.add(pid, [title])
        ended.set()
        seen.result()
    assert not halves
