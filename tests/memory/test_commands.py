"""wait, run, runs, diff, report and record from the command line, over simulated servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon import demo
from sgmon.analyse.store import Store
from sgmon.commands import after
from sgmon.commands.wait import AtEnd, Waiting, wait_for
from sgmon.history.database import StartDatabase
from sgmon.history.from_snapshot import start_of
from sgmon.model import Snapshot
from tests.memory import watches
from tests.memory.watches import snapshot
from tests.recorded import RECORDINGS
from tui_app.cli import main


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def _sgmon(*argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tui_app.cli", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, cwd=cwd)


def _two_runs() -> None:
    store = Store(watches.EPOCH)
    for event in watches.events():
        store.step(event)
    good = start_of(replace(store.snapshot, t=70.0), "ready")
    bad = replace(
        good,
        started=good.started + 1000,
        outcome="stalled",
        milestones=good.milestones[:4],
        args=(("model_path", "/models/m"), ("tp_size", "4")),
        env=(("NCCL_DEBUG", "INFO"), ("NCCL_P2P_DISABLE", "1")),
        key=replace(good.key, version="0.5.9"),
    )
    for run in (good, bad):
        StartDatabase().add(run)


# wait


@pytest.fixture(scope="module")
def stopped() -> Iterator[demo.DemoServer]:
    with demo.start("stopped", tp=2, speed=4.0) as server:
        yield server


def test_wait_runs_the_hook_once_and_writes_a_report(stopped: demo.DemoServer, tmp_path: Path) -> None:
    for stall in ("0s", "20s"):  # a loaded machine may see that it is stopped before the log is read
        folder = tmp_path / stall
        folder.mkdir()
        hook, bundle, summary = folder / "hook.txt", folder / "r.zip", folder / "summary.md"
        command = [sys.executable, "-m", "tui_app.cli", "wait", "--pid", str(stopped.pid), "--stall", stall]
        command += ["--timeout", "200s", "--report", str(bundle), "--on-stall"]
        command += [f'echo "$SGMON_STATE of $SGMON_PID, odd $SGMON_ODD_RANKS" | tee -a {hook}; exit 3']
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
            env={**os.environ, "GITHUB_STEP_SUMMARY": str(summary)},
        )
        if "0 lines of log" not in summary.read_text():
            break
    assert done.returncode == 3, done.stderr
    assert hook.read_text() == f"stopped of {stopped.pid}, odd TP1\n"
    assert f"stopped of {stopped.pid}" in done.stderr
    assert "--on-stall ended with 3" in done.stderr
    with zipfile.ZipFile(bundle) as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
    assert {"report.md", "recording.jsonl.gz", "status.json", "log.txt"} <= names
    assert "stopped (exit code 3)" in summary.read_text()
    assert "| importing |" in summary.read_text()


def test_a_stall_must_hold() -> None:
    waiting = Waiting(timeout_s=100.0, stall_s=30.0)
    assert not waiting.look(snapshot("stalled", 10.0))
    assert not waiting.look(snapshot("progressing", 20.0))
    assert not waiting.look(snapshot("stalled", 35.0))
    assert not waiting.look(snapshot("stalled", 64.0))
    assert waiting.look(snapshot("stalled", 65.0))
    assert waiting.code == 3


class Scripted:
    """An engine that shows these snapshots."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self.snapshots, self.snapshot, self.source = snapshots, snapshots[0], self

    def subscribe(self, subscriber: Callable[[Snapshot], None]) -> None:
        self.look = subscriber

    def run_here(self) -> None:
        for one in self.snapshots:
            self.look(one)

    def stop(self) -> None:
        pass


def test_a_line_each_ten_seconds_and_for_each_turn(capsys: pytest.CaptureFixture[str]) -> None:
    states = (
        ["progressing"] * 12 + ["slow", "progressing", "slow"] + ["suspect", "stalled", "progressing"] + ["ready"]
    )
    engine = Scripted(*(snapshot(state, 1.0 + number) for number, state in enumerate(states)))
    assert wait_for(engine, Waiting(100.0, 30.0), AtEnd()) == 0  # type: ignore[arg-type]
    said = [line.split("]")[1].split()[0].strip(",:") for line in capsys.readouterr().err.splitlines()]
    assert said == ["progressing", "progressing", "suspect", "stalled", "ready"]


def test_a_hook_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after, "HOOK_S", 0.3)
    said = after.run_hook("echo begun; sleep 60 & sleep 60", snapshot("stalled"), "")
    assert "begun" in said
    assert "was killed" in said


# run


def test_run_gives_the_childs_exit_code_and_a_log(tmp_path: Path) -> None:
    done = _sgmon(
        "run", "--wait", "--", sys.executable, "-c", "print('no server'); raise SystemExit(7)", cwd=tmp_path
    )
    assert done.returncode == 7, done.stderr
    assert "has ended with code 7" in done.stderr
    assert "the command ended with code 7 before it became a server" in done.stdout
    assert "--pid" not in done.stdout + done.stderr, "nobody has given a pid"
    logs = list(tmp_path.glob("server-*.log"))
    assert [log.read_text() for log in logs] == ["no server\n"]


def test_an_end_without_an_error_is_no_success_of_a_server_that_never_was_ready(tmp_path: Path) -> None:
    done = _sgmon("run", "--wait", "--", "true", cwd=tmp_path)
    assert "CRASHED" in done.stdout
    assert "has ended with code 0" in done.stderr
    assert done.returncode == 5, "a script would go on as if the server were ready"


def test_run_leaves_the_server_running(tmp_path: Path) -> None:
    for timeout in ("1s", "30s"):  # a loaded machine may not have looked once in a second
        argv = ["run", "--wait", "--timeout", timeout, "--log", str(tmp_path / "a.log"), "--", "sleep", "300"]
        done = _sgmon(*argv)
        assert done.returncode == 6
        assert "the server goes on: pid " in done.stderr
        pid = int(done.stderr.split("the server goes on: pid ")[1].split(",")[0])
        assert os.getsid(pid) == pid  # a session of its own
        os.kill(pid, 9)
        if "looked for a server in pid " in done.stdout:
            break
    assert "gave up (--timeout)" in done.stderr
    assert "WAITING" in done.stdout and "looked for a server in pid " in done.stdout


# runs and diff


def test_runs_lists_them_and_tells_one_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0
    assert "no finished start yet" in capsys.readouterr().out
    _two_runs()
    assert main(["runs"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 3
    assert "stalled" in out[1] and "ready" in out[2]
    assert main(["runs", "1"]) == 0
    out = capsys.readouterr().out
    assert "NCCL_DEBUG=INFO" in out and "load_begin TP0" in out
    assert main(["runs", "--json"]) == 0
    assert [one["outcome"] for one in json.loads(capsys.readouterr().out)["runs"]] == ["stalled", "ready"]
    assert main(["runs", "99"]) == 2


def test_diff_of_two_starts(capsys: pytest.CaptureFixture[str]) -> None:
    _two_runs()
    assert main(["diff", "1", "2"]) == 0
    out = capsys.readouterr().out
    assert "First divergence: TP0 kv_alloc is in A (line 5 +54s) and not in B." in out
    assert "tp_size: 2  |  4" in out
    assert "NCCL_P2P_DISABLE: -  |  1" in out
    assert "version: 0.5.23  |  0.5.9" in out


def test_diff_of_recordings_and_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a.log"
    log.write_text(watches.log_lines())
    good, bad = (str(RECORDINGS / f"{name}.jsonl.gz") for name in ("cpu-tp2-tiny", "cpu-tp2-kill9-load"))
    assert main(["diff", good, bad, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["a"]["outcome"], found["b"]["outcome"]) == ("ready", "crashed")
    assert found["first_divergence"]["b"] is None
    assert main(["diff", str(log), good]) == 0
    assert "First divergence" in capsys.readouterr().out
    assert main(["diff", "/nowhere", good]) == 2
    assert main(["diff", "77", good]) == 2


# report


def test_a_report_of_a_recording(tmp_path: Path) -> None:
    out = tmp_path / "r.zip"
    recording = str(RECORDINGS / "gpu-oom-frac.jsonl.gz")
    done = _sgmon("report", "--recording", recording, "-o", str(out), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert not out.exists()
    done = _sgmon("report", "--recording", recording, "-o", str(out))
    assert done.stdout.strip() == str(out)
    assert "report.md" in done.stderr
    with zipfile.ZipFile(out) as archive:
        page = archive.read(next(n for n in archive.namelist() if n.endswith("report.md"))).decode()
    assert page.startswith("# crashed: ")
    assert "First error in the log" in page


def test_no_server_no_report(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    done = _sgmon("report", "--proc-root", str(tmp_path), "--seconds", "0")
    assert done.returncode == 6
    assert "--recording" in done.stderr
