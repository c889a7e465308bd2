"""sgmon is started where others may write (/tmp, a model's folder): no program of theirs is imported from there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sgmon import demo
from sgmon.collect.preflight import models
from sgmon.paths import code_root
from sgmon.settings import Settings
from tui_app.serve import visitor_command

LIMIT_S = 90.0


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with modules in it that say that they have run. Nothing else leads to our own packages than
    their installation, or this path."""
    folder = tmp_path / "theirs"
    for name in ("json", "msgspec", "argparse", "shutil", "sgmon", "tui_app"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", code_root())
    return tmp_path / "ran"


def test_a_folder_of_weights_that_is_read_by_a_child(trap: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    read = models._by_child(str(tmp_path / "model"), "m")
    assert not trap.exists(), trap.read_text()
    assert read.path == str(tmp_path / "model")


def test_a_visitor_of_serve(trap: Path) -> None:
    """Its program is refused its settings: enough of it has been imported by then."""
    command = visitor_command(Settings()).rpartition(" ")[0]
    run = subprocess.run(
        ["sh", "-c", f"{command} nonsense"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert "DecodeError" in run.stderr, run.stderr
    assert not trap.exists(), trap.read_text()


def test_a_simulated_server(trap: Path) -> None:
    with demo.start("healthy", tp=2, speed=8.0) as server:
        assert os.path.exists(f"/proc/{server.pid}")
    assert not trap.exists(), trap.read_text()
