"""Logs that move, break, flood or are no file: what was read stays, what cannot be read is said."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.collect.logs import file as logfile
from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.watching import Watch, watching
from tests.faults.world import LAUNCHER, TP0, TP1, World, log_lines
from tests.fuse import fuse_mount

MORE = "[2030-01-01 00:00:00 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=60 GB"


def settings(world: World, **more: object) -> Settings:
    return Settings(proc_root=str(world.fake), interval_s=0.2, **more)  # type: ignore[arg-type]


@pytest.fixture
def watch(world: World, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Of a start whose log is read."""
    monkeypatch.setattr(logfile, "_LOOK_S", 0.1)
    monkeypatch.setattr(logfile, "_FAILING_S", 0.1)
    with watching(screen, settings(world)) as made:
        made.until(lambda json: json["log"] and json["log"]["lines"] == 5 and len(json["ranks"]) == 3)
        yield made


def reads_on(watch: Watch, world: World, lines: int) -> None:
    """New lines are seen, and nothing is said to be wrong any more."""
    world.says("a new line")
    said = watch.until(lambda json: json["log"]["last_line"] == "a new line" and not json["log"]["note"])
    assert said["log"]["lines"] == lines
    watch.shows("a new line")


def opened_by_the_server(world: World) -> None:
    for pid in (LAUNCHER, TP0, TP1):
        for fd in ("1", "2"):
            link = world.root / str(pid) / "fd" / fd
            link.unlink(missing_ok=True)
            link.symlink_to(world.log)


# the file moves


def test_rotated_and_opened_anew(watch: Watch, world: World) -> None:
    world.log.rename(world.log.with_suffix(".log.1"))
    world.log.write_text("after the rotation\n")
    said = watch.until(lambda json: json["log"]["last_line"] == "after the rotation")
    assert said["log"]["lines"] == 1  # of this file
    assert said["phase"] == "weights"  # what the old file said still holds
    watch.shows("after the rotation")
    reads_on(watch, world, 2)


def test_copied_and_truncated(watch: Watch, world: World) -> None:
    shutil.copy(world.log, world.log.with_suffix(".log.1"))
    with open(world.log, "r+b") as file:
        file.truncate(0)
    watch.until(lambda json: json["log"]["size_bytes"] == 0)
    world.says("after it")
    watch.until(lambda json: json["log"]["last_line"] == "after it")
    watch.shows("after it")


def test_sparse_after_a_truncation(watch: Watch, world: World) -> None:
    """The writer has no O_APPEND: it goes on behind a hole."""
    with open(world.log, "r+b") as file:
        file.truncate(0)
        file.seek(300_000)
        file.write(b"behind the hole\n")
    watch.until(lambda json: json["log"]["last_line"] == "behind the hole")
    watch.shows("behind the hole")
    assert "\0" not in watch.json["log"]["last_line"]


def test_deleted(watch: Watch, world: World) -> None:
    world.log.unlink()
    said = watch.until(lambda json: json["log"]["note"])
    assert said["log"]["lines"] == 5
    assert said["state"] == "progressing"
    watch.shows("Load weight begin")


def test_deleted_and_there_again(watch: Watch, world: World) -> None:
    world.log.unlink()
    watch.until(lambda json: json["log"]["note"])
    world.log.write_text("there again\n")
    watch.until(lambda json: json["log"]["last_line"] == "there again" and not json["log"]["note"])
    watch.shows("there again")


def test_replaced_by_a_directory(watch: Watch, world: World) -> None:
    world.log.unlink()
    world.log.mkdir()
    said = watch.until(lambda json: "directory" in json["log"]["note"])
    assert said["log"]["lines"] == 5
    watch.shows("is a directory")
    world.log.rmdir()
    world.log.write_text("a file again\n")
    watch.until(lambda json: json["log"]["last_line"] == "a file again" and not json["log"]["note"])


def test_replaced_by_a_fifo(watch: Watch, world: World) -> None:
    """Nobody opens it: that would take the text away from its reader, or hang."""
    world.log.unlink()
    os.mkfifo(world.log)
    said = watch.until(lambda json: "pipe" in json["log"]["note"])
    assert said["log"]["lines"] == 5
    watch.shows("pipe")


def test_replaced_by_a_ring_of_links(watch: Watch, world: World) -> None:
    world.log.unlink()
    world.log.symlink_to(world.log)
    watch.until(lambda json: json["log"]["note"])
    watch.shows("Too many levels of symbolic links")


def test_its_folder_is_no_folder_any_more(tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfile, "_LOOK_S", 0.1)
    folder = tmp_path / "logs"
    folder.mkdir()
    world = World(tmp_path, log=False)
    world.log = folder / "server.log"
    world.log.write_text(log_lines())
    world.launcher()
    with watching(screen, settings(world)) as watch:
        watch.until(lambda json: json["log"] and json["log"]["lines"] == 5)
        shutil.rmtree(folder)
        folder.write_text("")
        watch.until(lambda json: json["log"]["note"])
        assert watch.json["log"]["lines"] == 5


# storage that fails


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ENOTCONN])
def test_it_cannot_be_read_for_a_while(
    watch: Watch, world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """It goes on where it was: no line is lost, none is read twice, and no defect of sgmon is claimed."""
    real = os.pread

    def refuse(*args: object) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pread", refuse)
    world.says("one more")
    said = watch.until(lambda json: os.strerror(number) in json["log"]["note"])
    assert said["log"]["lines"] == 5
    assert not [gap for gap in said["missing"] if "defect" in gap["remedy"]]
    watch.shows(f"cannot be read: {os.strerror(number)}")
    monkeypatch.setattr(os, "pread", real)
    watch.until(lambda json: json["log"]["last_line"] == "one more" and not json["log"]["note"])
    reads_on(watch, world, 7)


@pytest.mark.parametrize("fault", ["dead", "hung"])
def test_on_a_fuse_mount(tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """dead: the file system's daemon is gone (ENOTCONN). hung: it does not answer."""
    monkeypatch.setattr(logfile, "_LOOK_S", 0.1)
    source = tmp_path / "source"
    source.mkdir()
    (source / "server.log").write_text(log_lines())
    with fuse_mount(source, tmp_path / "mount") as mount:
        world = World(tmp_path, log=False)
        world.log = mount.point / "server.log"
        opened_by_the_server(world)
        with watching(screen, settings(world)) as watch:
            watch.until(lambda json: json["log"] and json["log"]["lines"] == 5)
            if fault == "dead":
                mount.child.kill()
                mount.child.wait(10)
                watch.until(lambda json: "cannot be read" in json["log"]["note"])
                watch.shows("cannot be read")
            else:
                mount.hang()
                seen = watch.snapshot.t
                watch.clock.shift_s = 6.0
                watch.until(lambda json: watch.snapshot.t > seen + 6.5)
                watch.shows("TP0", "TP1")
            assert watch.json["log"]["lines"] == 5


def test_no_permission(world: World, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: object, *args: object, **more: object) -> int:
        if str(path) == str(world.log) or "/fd/" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    with watching(screen, settings(world)) as watch:
        said = watch.until(lambda json: json["log"] and json["log"]["note"])
        assert "Permission denied" in said["log"]["note"]
        watch.shows("Permission denied")


# what it holds


def test_a_line_of_a_megabyte(watch: Watch, world: World) -> None:
    world.says("x" * (1 << 20), "behind it")
    said = watch.until(lambda json: json["log"]["last_line"] == "behind it")
    assert said["log"]["lines"] == 7
    watch.shows("behind it")


def test_a_line_that_never_ends(watch: Watch, world: World) -> None:
    with open(world.log, "a") as file:
        file.write("y" * (3 << 20))
    said = watch.until(lambda json: json["log"]["size_bytes"] > 3 << 20)
    assert len(said["log"]["last_line"] or "") < 1000
    watch.shows("TP0")


def test_nuls_in_a_line(watch: Watch, world: World) -> None:
    with open(world.log, "ab") as file:
        file.write(b"a\0\0b " + b"\0" * 5000 + b"\nbehind them\n")
    watch.until(lambda json: json["log"]["last_line"] == "behind them")
    assert "\0" not in watch.shows("behind them")


def test_bytes_that_are_no_text(watch: Watch, world: World) -> None:
    with open(world.log, "ab") as file:
        file.write(bytes(range(256)) * 40 + b"\n\xff\xfe\xe2\x82\nbehind them\n")
    watch.until(lambda json: json["log"]["last_line"] == "behind them")
    assert "\x1b" not in watch.shows("behind them")


def test_a_binary_file(tmp_path: Path, screen: Screen) -> None:
    world = World(tmp_path)
    world.log.write_bytes(os.urandom(60_000))
    with watching(screen, settings(world)) as watch:
        said = watch.until(lambda json: json["log"] and json["log"]["note"])
        assert "not a text file" in said["log"]["note"] and not said["log"]["lines"]
        watch.shows("not a text file")


def test_escapes(watch: Watch, world: World) -> None:
    world.says("\x1b[2J\x1b]0;title\x07\x1bP+q\x1b\\\x9b31m\u202egpj.exe [/bold][@click=app.quit] seen")
    watch.until(lambda json: "seen" in (json["log"]["last_line"] or ""))
    text = watch.shows("seen")
    assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert not set("\x1b\x07\x9b\u202e") & set(watch.json["log"]["last_line"])


def test_a_bar_that_never_ends_its_line(watch: Watch, world: World) -> None:
    with open(world.log, "a") as file:
        for done in range(20_000):
            file.write(f"\rLoading safetensors checkpoint shards: {done % 100}% | {done % 100}/100")
    watch.until(lambda json: json["log"]["size_bytes"] > 1_000_000)
    assert watch.json["log"]["lines"] == 6
    watch.shows("TP0")


def test_a_flood(watch: Watch, world: World) -> None:
    """8 MB at once, faster than it can be read: keys are answered before it is."""
    row = "[2030-01-01 00:00:00 TP0] NCCL INFO Channel 00/24 : 0 1 2 3 4 5 6 7 and so on and so on\n"
    block = row * 3000
    with open(world.log, "a") as file:
        for _ in range(30):
            file.write(block)
    watch.answers_keys()
    size = world.log.stat().st_size
    watch.until(lambda json: json["log"]["size_bytes"] == size)
    watch.answers_keys()


def test_times_that_jump(watch: Watch, world: World) -> None:
    for stamp in ("2099-12-31 23:59:59", "1970-01-01 00:00:00", "0000-99-99 99:99:99", "2026-02-30 25:61:61"):
        world.says(f"[{stamp} TP0] a line")
    watch.until(lambda json: json["log"]["lines"] == 9)
    assert watch.json["state"] == "progressing"
    assert all((one["last_sign_of_life"] or {"age_s": 0}).get("age_s", 0) >= 0 for one in watch.json["ranks"])
    watch.shows("a line")


def test_a_file_from_the_future(world: World, screen: Screen) -> None:
    os.utime(world.log, (4e9, 4e9))
    with watching(screen, settings(world)) as watch:
        said = watch.until(lambda json: json["log"] and json["log"]["lines"] == 5)
        assert said["log"]["quiet_s"] >= 0
        watch.shows("TP0")


# no file at all


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("pipe:[4711]", "pipe"),
        ("/dev/pts/3", "terminal"),
        ("socket:[4712]", "socket"),
        ("/dev/null", "goes to /dev/null"),
        ("anon_inode:[eventfd]", "--log"),
    ],
)
def test_the_log_is_no_file(tmp_path: Path, screen: Screen, target: str, words: str) -> None:
    world = World(tmp_path, log=False)
    world.log = Path(target)
    world.launcher(fds={1: target, 2: target})
    for pid, name in ((TP0, "TP0"), (TP1, "TP1")):
        world.rank(pid, name, fds={1: target, 2: target})
    with watching(screen, settings(world)) as watch:
        said = watch.until(lambda json: json["log"] and json["log"]["note"])
        assert words in said["log"]["note"]
        assert said["log"]["lines"] == 0 and said["log"]["last_line"] is None
        watch.shows("--log")


def test_a_socket_file_as_the_log(tmp_path: Path, screen: Screen) -> None:
    world = World(tmp_path, log=False)
    with socket.socket(socket.AF_UNIX) as sock:
        cwd = os.getcwd()
        os.chdir(tmp_path)  # a path of at most 108 bytes
        try:
            sock.bind("server.log")
        finally:
            os.chdir(cwd)
        with watching(screen, settings(world)) as watch:
            said = watch.until(lambda json: json["log"] and json["log"]["note"])
            assert "socket" in said["log"]["note"]
            watch.shows("socket")


# a command that prints it


def test_the_container_engine_is_gone(world: World, screen: Screen) -> None:
    """What it has printed stays; its complaint is passed on; it is started again."""
    words = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
    script = f"import sys; print('a first line', flush=True); sys.exit({words!r})"
    with watching(screen, settings(world, log_command=(sys.executable, "-c", script))) as watch:
        said = watch.until(lambda json: json["log"] and "Docker daemon" in json["log"]["note"])
        assert "exit code 1" in said["log"]["note"] and "starts it again" in said["log"]["note"]
        watch.shows("a first line")


def test_the_container_engine_is_not_installed(world: World, screen: Screen) -> None:
    with watching(screen, settings(world, log_command=("/nonexistent/docker", "logs", "-f", "x"))) as watch:
        watch.until(lambda json: json["log"] and "no such" in json["log"]["note"].lower())
        watch.shows("docker")


def test_a_command_that_says_nothing(world: World, screen: Screen) -> None:
    before = set(_children())
    with watching(screen, settings(world, log_command=(sys.executable, "-c", "input()  or 1"))) as watch:
        watch.until(lambda json: len(json["ranks"]) == 3)
        watch.shows("TP0")
    for _ in range(600):
        if not set(_children()) - before:
            return
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError("the command outlives the watch")


def _children() -> list[str]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return file.read().split()
