"""``sgmon run`` checks what it starts beside the start."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sgmon.commands import check, run
from sgmon.model.preflight import Forecast, Level

COMMAND = ["--", sys.executable, "-m", "sglang.launch_server", "--model-path", "/none/at/all"]


def test_the_start_does_not_wait_for_the_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go_on, monkeyed = threading.Event(), check.check
    monkeypatch.setattr(check, "check", lambda *given: go_on.wait(30) and monkeyed(*given))
    monkeypatch.setattr(run, "ask_gpu", lambda settings: None)
    started = run.start(["sleep", "60"], str(tmp_path / "log"))
    try:
        thread = run.check_beside(COMMAND, started.child.pid)
        assert started.child.poll() is None and thread.is_alive(), "it runs, and nothing has been said yet"
        go_on.set()
        thread.join(30)
        assert "WILL FAIL" in capsys.readouterr().err
    finally:
        started.child.kill()
        started.child.wait(10)


def test_the_server_s_own_port_is_nobody_else_s(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        held = Forecast("port", "port 1", Level.WILL_FAIL, f"held by pid {child.pid}", pid=child.pid)
        monkeypatch.setattr(check, "check", lambda *given: (held,))
        monkeypatch.setattr(run, "ask_gpu", lambda settings: None)
        assert not any("WILL FAIL" in line for line in run.checked(COMMAND, child.pid))
        assert any("WILL FAIL" in line for line in run.checked(COMMAND, 1))
    finally:
        child.kill()
        child.wait(10)


def test_a_command_behind_which_no_server_is_seen() -> None:
    assert run.checked(["--", "sleep", "1"], 1) == []
