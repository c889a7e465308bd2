"""Environments in which sgmon is started: no home, no locale, names that are no text, a window of a few columns."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from msgspec.structs import replace

from sgmon import config, paths
from sgmon.collect.preflight import machine
from sgmon.commands.after import run_hook
from sgmon.discovery.inner import Inside
from sgmon.history.database import StartDatabase
from sgmon.model import Event, LogReading, Snapshot
from sgmon.recording.codec import Encoder
from sgmon.remote.wire import EventLines
from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.test_terminal import LIMIT_S, started
from tests.faults.watching import watching
from tests.faults.world import World
from tests.memory.test_history import KEY, _run
from tui_app import cli, watch
from tui_app.copying import copy_text, save_text

#: as Python gives the byte 0xFF of a file's name
NO_TEXT = "\udcff"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_without_our_characters(world: World, encoding: str) -> None:
    """A container without a locale, PYTHONIOENCODING: "?" for each of them, and the exit code of the verdict."""
    world.log.write_text(f"{world.log.read_text()}字…\n")
    with started(
        world, "status", env={**os.environ, "PYTHONPATH": os.getcwd(), "PYTHONIOENCODING": encoding}
    ) as child:
        out, said = child.communicate(timeout=LIMIT_S)
    assert "Traceback" not in said
    assert child.returncode == 4 and "TP0" in out and "??" in out


def test_the_output_is_full(world: World) -> None:
    with open("/dev/full", "w") as full, started(world, "status", stdout=full) as child:
        _, said = child.communicate(timeout=LIMIT_S)
    assert "Traceback" not in said
    assert "the output cannot be written: No space left on device" in said
    assert child.returncode == 1, "no verdict was told"


def test_a_name_that_is_no_text(tmp_path: Path, screen: Screen) -> None:
    """The path of the log holds a byte that is no UTF-8: it is read, shown, recorded and kept all the same."""
    folder = tmp_path / f"runs{NO_TEXT}"
    folder.mkdir()
    world = World(folder)
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
        watch.until(lambda json: json["log"] and json["log"]["lines"] == 5)
        watch.until(lambda json: "runs�" in json["log"]["path"])


def test_what_is_kept_of_a_name_that_is_no_text(tmp_path: Path) -> None:
    event = Event(1.0, "log", LogReading(f"/{NO_TEXT}.log", text="a\n"))
    encoded = Encoder().encode(event)
    assert encoded is not None and encoded.body is not None and '"/�.log"'.encode() in encoded.body
    assert '"/�.log"'.encode() in EventLines().line(event)
    database = StartDatabase(tmp_path / "history.sqlite")
    database.add(replace(_run(1.0, 2.0), log=f"/{NO_TEXT}.log", key=replace(KEY, model=NO_TEXT)))
    assert [(run.log, run.key.model) for run in database.runs()] == [("/�.log", "�")]
    assert database.baseline(replace(KEY, model=NO_TEXT)) is not None


@pytest.mark.parametrize(("size", "kept"), [((120, 40), False), ((0, 0), True)])
def test_an_exported_size(monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], kept: bool) -> None:
    """It counts where the terminal does not know its own: else the first layout would be of a milliard of columns."""
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size(size))
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(fileno=lambda: 2))
    monkeypatch.setenv("COLUMNS", "999999999")
    watch._forget_exported_size()
    assert ("COLUMNS" in os.environ) is kept


@pytest.fixture
def without_variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(paths, "private_folder", lambda path: path)
    return monkeypatch


def test_nobody_knows_the_home(without_variables: pytest.MonkeyPatch) -> None:
    """A user id without an entry, and no HOME: a container with an arbitrary one. Nothing is kept in the working
    folder."""

    def no_entry(_: int) -> None:
        raise KeyError

    without_variables.setattr(pwd, "getpwuid", no_entry)
    assert config.config_path() == Path("/.config/sgmon/config.toml")
    assert config.theme_path() == Path("/.local/state/sgmon/theme")
    assert paths.state_dir() == Path("/.local/state/sgmon")


@pytest.mark.parametrize("home", ["/dev/null", "/nonexistent", "."])
def test_a_home_that_is_none(without_variables: pytest.MonkeyPatch, home: str) -> None:
    without_variables.setenv("HOME", home)
    assert config.read(config.config_path()) == {}
    assert paths.state_dir().is_absolute()


def test_the_home_is_another_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOME of a container that gave up root: whether a file is there cannot be seen. One that is there is told."""

    def refused(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "sgmon" / "config.toml"
    path.parent.mkdir()
    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(config.ConfigError, match="Permission denied"):
        config.read(path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert config.read(path) == {}
    monkeypatch.setattr(Path, "is_dir", refused)
    assert config.read(path) == {}


@pytest.fixture
def without_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder was deleted, and nobody may write into a temporary one."""

    def gone() -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "getcwd", gone)
    monkeypatch.setattr(tempfile, "gettempdir", gone)


@pytest.mark.usefixtures("without_folders")
@pytest.mark.parametrize("words", [["run", "--wait", "--", "true"], ["status", "--watch-dir", "x", "--no-gpu"]])
def test_a_command_that_needs_the_working_folder(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr().err == "sgmon: the working folder is gone: cd to another one\n"


@pytest.mark.usefixtures("without_folders")
def test_a_view_that_can_be_saved_nowhere() -> None:
    said: list[str] = []
    app = SimpleNamespace(notify=lambda words, **_: said.append(words), copy_to_clipboard=lambda _: None)
    assert save_text(app, "text", "view") is None  # type: ignore[arg-type]
    copy_text(app, "text", "the view")  # type: ignore[arg-type]
    assert said == [
        "could not write a file here nor in the temporary folder",
        "the view copied (No such file or directory: no file beside it)",
    ]


def test_an_environment_as_large_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variables of the hook it is too large: the exit code of the verdict stays."""
    for number in range(128):
        monkeypatch.setenv(f"LARGE_{number}", "x" * 100_000)
    assert run_hook("true", Snapshot(), "") == "--on-stall could not be started: Argument list too long"


def test_a_proc_of_processes_alone(world: World, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """``subset=pid``, as ProcSubset= of systemd mounts it: no boot time, no memory of the machine, no interfaces."""
    for path in world.root.iterdir():
        if path.is_file() or path.name in ("net", "sys", "pressure"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def is_not_there() -> None:
        raise FileNotFoundError(2, "No such file or directory", "/proc/net/dev")

    for name in ("net_if_stats", "virtual_memory", "swap_memory"):
        monkeypatch.setattr(psutil, name, is_not_there)
    limits = machine.limits(Inside(str(world.fake), 100))
    assert (machine.interfaces(), limits.memory_total_bytes, limits.swap_bytes) == ((), None, None)
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
        said = watch.until(lambda json: json["state"] == "progressing" and json["log"]["lines"] == 5)
        assert said["server"]["started"] is None
        watch.shows("TP0", "TP1")
