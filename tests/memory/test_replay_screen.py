"""Recordings on the screen, in a real terminal: the keys that move in time, a report, a flight."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from sgmon import demo
from sgmon.recording import codec
from tests.e2e.terminal import Terminal
from tests.recorded import RECORDINGS


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reports are written into the working directory; the package must be found from there."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_keys_of_a_replay(elsewhere: Path) -> None:
    path = str(RECORDINGS / "gpu-tp2-stop1.jsonl.gz")
    with Terminal("replay", path, "--at", "20s", columns=150) as terminal:
        terminal.until(lambda s: "REPLAY 20s/1m28s paused" in s)
        terminal.press("\x1b[C")
        terminal.until(lambda s: "REPLAY 30s/" in s)
        terminal.press("\x1b[D\x1b[D")
        terminal.until(lambda s: "REPLAY 10s/" in s or "REPLAY 10.0s/" in s)
        # a frame may come in two parts, so that a key is pressed once more than is seen
        while "STOPPED" not in (before := terminal.lines()[0]):
            terminal.press("]")
            terminal.until(lambda s, before=before: s.splitlines()[0] != before)
        while "STOPPED" in (before := terminal.lines()[0]):
            terminal.press("[")
            terminal.until(lambda s, before=before: s.splitlines()[0] != before)
        terminal.press("++")
        terminal.until(lambda s: "5x" in s.splitlines()[0])
        terminal.press(" ")
        terminal.until(lambda s: "paused" not in s.splitlines()[0])
        terminal.press("?")
        terminal.until(lambda s: "in a replay" in s)
        terminal.press("qqq")
        assert terminal.wait() == 0


def test_a_report_is_shown_before_it_is_written(elsewhere: Path) -> None:
    path = str(RECORDINGS / "gpu-oom-frac.jsonl.gz")
    with Terminal("replay", path, "--speed", "0") as terminal:
        terminal.until(lambda s: "CRASHED" in s and "at the end" in s)
        terminal.press("\x13")
        terminal.until(lambda s: "enter writes it here" in s and "report.md" in s)
        assert not list(elsewhere.glob("*.zip"))
        terminal.press("\r")
        terminal.until(lambda s: "report:" in s)  # its path may begin in the next row
        terminal.press("qqq")
        assert terminal.wait() == 0
    (made,) = elsewhere.glob("*.zip")
    with zipfile.ZipFile(made) as archive:
        assert any(name.endswith("report.md") for name in archive.namelist())


def test_ctrl_r_saves_the_flight_of_a_live_watch(elsewhere: Path) -> None:
    flights = elsewhere / "state" / "sgmon" / "flights"
    with demo.start("healthy", tp=2, speed=1.0) as server, Terminal("--pid", str(server.pid)) as terminal:
        terminal.until(lambda s: "TP0" in s)
        terminal.press("\x12")
        terminal.until(lambda s: list(flights.glob("*.gz")))
        terminal.press("qq")
        assert terminal.wait() == 0
    (flight,) = flights.iterdir()
    kinds = {event.kind for event in codec.read(flight)[1]}
    assert {"server", "procs", "log", "tick"} <= kinds
    assert os.stat(flight).st_mode & 0o077 == 0


def test_quitting_a_run_leaves_the_server_and_says_so(elsewhere: Path) -> None:
    with Terminal("run", "--log", "a.log", "--", "sleep", "300") as terminal:
        terminal.until(lambda s: "no SGLang or vLLM server" in s or "WAITING" in s)
        terminal.press("qq")
        terminal.wait()
        said = terminal.raw.decode(errors="replace")
    assert "the server goes on: pid " in said
    pid = int(said.split("the server goes on: pid ")[1].split(",")[0])
    os.kill(pid, 9)
