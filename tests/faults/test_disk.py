"""Disks that are full, read-only, hung or hold damaged files: the watch goes on, and what is not kept is said."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sgmon.history.database import StartDatabase
from sgmon.recording.writer import Recorder
from sgmon.settings import Settings
from sgmon.watch.persistence import Persistence
from tests.faults.screen import Screen
from tests.faults.watching import Watch, probes_of, watching
from tests.faults.world import World


@contextmanager
def remembering(
    world: World, screen: Screen, home: Path, patch: pytest.MonkeyPatch, **options: object
) -> Iterator[Watch]:
    """A watch that keeps a flight and a history below ``home``."""
    patch.setenv("XDG_STATE_HOME", str(home))
    settings = Settings(proc_root=str(world.fake), interval_s=0.2)
    kept = Persistence(0.0, StartDatabase())
    with watching(screen, settings, probes_of("server", "procs", "log"), persistence=kept, **options) as watch:
        watch.until(lambda json: json["state"] == "progressing" and json["log"]["lines"])
        yield watch


def trouble(watch: Watch, name: str) -> str:
    return next((status.error for status in watch.snapshot.probes if status.name == name), "")


def ends(world: World, watch: Watch) -> None:
    """A crash, which is to be kept."""
    world.fake.remove(120)
    watch.until(lambda json: json["state"] == "crashed")


def test_the_state_is_read_only(
    world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(home)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"nothing can be mounted here: {made.stderr.decode().strip()}")
    try:
        with remembering(world, screen, home, monkeypatch) as watch:
            ends(world, watch)
            watch.until(lambda json: trouble(watch, "flight"))
            assert "Read-only file system" in trouble(watch, "flight")
            watch.shows("CRASHED", "Read-only file system")
    finally:
        subprocess.run(["umount", "-l", str(home)], check=False)


def test_the_state_is_full(world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(home)]
    made = subprocess.run(mount, capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"nothing can be mounted here: {made.stderr.decode().strip()}")
    try:
        with remembering(world, screen, home, monkeypatch) as watch:
            with open(home / "filler", "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
                while True:
                    file.write(b"x" * 4096)
            ends(world, watch)
            watch.until(lambda json: trouble(watch, "flight"))
            assert "No space left on device" in trouble(watch, "flight")
            watch.shows("CRASHED", "No space left")
    finally:
        subprocess.run(["umount", "-l", str(home)], check=False)


def test_the_state_is_a_file(world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    with remembering(world, screen, home, monkeypatch) as watch:
        ends(world, watch)
        watch.until(lambda json: trouble(watch, "flight"))
        watch.shows("CRASHED")


@pytest.mark.parametrize(
    "content", [b"no database at all", b"SQLite format 3\0" + bytes(range(1, 256)) * 20], ids=["text", "torn"]
)
def test_the_history_is_damaged(
    world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    folder = tmp_path / "home" / "sgmon"
    folder.mkdir(parents=True)
    (folder / "history.sqlite").write_bytes(content)
    with remembering(world, screen, tmp_path / "home", monkeypatch) as watch:
        ends(world, watch)
        watch.clock.shift_s = 10.0
        watch.until(lambda json: trouble(watch, "history"))
        assert "cannot be used" in trouble(watch, "history")
        watch.shows("CRASHED")
    assert (folder / "history.sqlite").read_bytes() == content  # nothing was taken away


def test_the_history_is_locked(world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another program: it is not damaged, and nobody is told to move it away."""
    from sgmon.history import database

    monkeypatch.setattr(database, "BUSY_S", 0.2)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    StartDatabase().runs()
    other = sqlite3.connect(StartDatabase().path, isolation_level=None)
    other.execute("begin exclusive")
    with remembering(world, screen, tmp_path / "home", monkeypatch) as watch:
        ends(world, watch)
        watch.clock.shift_s = 10.0
        watch.until(lambda json: trouble(watch, "history"))
        assert "locked" in trouble(watch, "history")
        remedy = next(status.remedy for status in watch.snapshot.probes if status.name == "history")
        assert "another program" in remedy and "mv " not in remedy
        watch.shows("CRASHED")
    other.close()


def test_the_history_hangs(
    world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(StartDatabase, "add", lambda self, run: gate.wait(60))
    with remembering(world, screen, tmp_path / "home", monkeypatch) as watch:
        ends(world, watch)
        watch.clock.shift_s = 10.0
        watch.until(lambda json: watch.snapshot.saved)
        watch.shows("CRASHED")


def test_the_flight_hangs(
    world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(Persistence, "_write_flight", lambda self, path, note: gate.wait(60) and path)
    with remembering(world, screen, tmp_path / "home", monkeypatch) as watch:
        ends(world, watch)
        watch.shows("CRASHED")
        assert not watch.snapshot.saved


def test_no_thread_for_the_flight(
    world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name.startswith("keep-"):
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with remembering(world, screen, tmp_path / "home", monkeypatch) as watch:
        ends(world, watch)
        watch.until(lambda json: trouble(watch, "flight"))
        assert "can start no thread" in trouble(watch, "flight")
        watch.shows("CRASHED")


def refusing(number: int) -> Callable[..., int]:
    def write(fd: int, data: bytes) -> int:
        raise OSError(number, os.strerror(number))

    return write


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_the_recording_cannot_be_written(
    world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    from sgmon.recording import writer

    class Refusing:
        """os, whose write fails."""

        write = staticmethod(refusing(number))

        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

    recorder = Recorder(tmp_path / "start.jsonl.gz", 0.0)
    monkeypatch.setattr(writer, "os", Refusing())
    monkeypatch.setattr(writer, "FLUSH_S", 0.05)
    with remembering(world, screen, tmp_path / "home", monkeypatch, recorder=recorder) as watch:
        watch.until(lambda json: trouble(watch, "recording"))
        assert os.strerror(number) in trouble(watch, "recording")
        watch.shows("PROGRESSING", "cannot be written")


def test_two_watches_keep_one_start(
    world: World, screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    with (
        remembering(world, screen, home, monkeypatch) as first,
        remembering(world, screen, home, monkeypatch) as second,
    ):
        ends(world, first)
        second.until(lambda json: json["state"] == "crashed")
        assert first.json["headline"] == second.json["headline"]
        for one in (first, second):
            one.clock.shift_s = 10.0
            one.until(lambda json, one=one: one.snapshot.saved)
        second.shows("CRASHED")
    kept = [run for run in StartDatabase().runs() if run.pid == 100]
    assert [run.outcome for run in kept] == ["crashed"]
    assert len(list((tmp_path / "home" / "sgmon" / "flights").glob("*.jsonl.gz"))) in (1, 2)


def run_sgmon(*words: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH", "")]))}
    command = [sys.executable, "-m", "tui_app.cli", *words]
    return subprocess.run(
        command, cwd=cwd, env={**own, **(env or {})}, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_working_directory_is_gone(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    words = f"cd {folder} && rmdir {folder} && exec {sys.executable} -m tui_app.cli status --json --no-gpu"
    own = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        ["sh", "-c", f"{words} --proc-root {world.fake}"],
        env=own,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert '"pid":100' in done.stdout, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", ["not = [toml", "[nonsense]\nx = 1\n", "\x00\xff"])
def test_the_configuration_is_damaged(world: World, tmp_path: Path, content: str) -> None:
    folder = tmp_path / "config" / "sgmon"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(content, encoding="latin-1")
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = run_sgmon("status", "--json", "--no-gpu", "--proc-root", str(world.fake), cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert "config.toml" in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2
