"""/proc that refuses, vanishes, lies or is huge: what cannot be read is unknown with the reason, never 0."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sgmon.collect.probes import worker as worker_module
from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.watching import Watch, watching
from tests.faults.world import LAUNCHER, TP0, TP1, World
from tests.proc.fake import stat_line

REFUSED = "EACCES"


def settings(world: World) -> Settings:
    return Settings(proc_root=str(world.fake), interval_s=0.2)


def goes_on(json: dict) -> bool:
    return json["state"] == "progressing" and len(json["ranks"]) == 3 and bool(json["log"]["lines"])


def rank(json: dict, pid: int) -> dict:
    return next(one for one in json["ranks"] if one["pid"] == pid)


@pytest.fixture
def watch(world: World, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Of a start that goes on; dear reads are made each time."""
    for name in ("THREADS_EVERY_S", "FDS_EVERY_S", "MAPS_EVERY_S", "MAPS_IDLE_S"):
        monkeypatch.setattr(worker_module, name, 0.0)
    with watching(screen, settings(world)) as made:
        made.until(goes_on)
        yield made


@pytest.fixture
def refuse(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """From now on this file or folder of each rank cannot be opened, as for another user's process."""

    def begin(name: str, number: int = errno.EACCES) -> None:
        real = {"open": os.open, "listdir": os.listdir}
        ends = tuple(f"/{pid}/{name}" for pid in (TP0, TP1))

        def guarded(function: str) -> Callable[..., object]:
            def call(path: object = ".", *args: object, **more: object) -> object:
                if str(path).endswith(ends) and str(path).startswith(str(world.root)):
                    raise OSError(number, os.strerror(number), str(path))
                return real[function](path, *args, **more)  # type: ignore[operator]

            return call

        for function in real:
            monkeypatch.setattr(os, function, guarded(function))

    return begin


# refused, one field after the other


@pytest.mark.parametrize(
    ("name", "signal", "field"),
    [
        ("io", "io", "read_bytes_s"),
        ("status", "status", "rss_anon_bytes"),
        ("wchan", "wchan", "wchan"),
        ("syscall", "syscall", "call"),
        ("fd", "fds", "same_log"),
        ("maps", "maps", "shards"),
        ("task", "threads", None),
    ],
)
def test_a_field_is_refused(
    watch: Watch, world: World, refuse: Callable[[str, int], None], name: str, signal: str, field: str | None
) -> None:
    refuse(name, errno.EACCES)
    for pid, title in ((TP0, "TP0"), (TP1, "TP1")):  # it runs on: everything is read anew
        world.rank(pid, title, cpu_ticks=50)
        (world.root / str(pid) / "schedstat").write_text("1600000000 250000000 8\n")
    said = watch.until(lambda json: any(gap["signal"] == signal for gap in rank(json, TP0)["missing"]))
    gap = next(gap for gap in rank(said, TP0)["missing"] if gap["signal"] == signal)
    assert REFUSED in gap["why"] and gap["remedy"]
    assert said["state"] == "progressing", said["headline"]
    if field is not None:
        watch.until(lambda json: rank(json, TP0)[field] is None)
    watch.shows("TP0", "TP1")


def test_stat_is_refused(watch: Watch, refuse: Callable[[str, int], None]) -> None:
    """hidepid=1: whether they live cannot be read, so nobody says that they have died."""
    refuse("stat", errno.EACCES)
    said = watch.until(lambda json: rank(json, TP0)["missing"])
    assert not rank(said, TP0)["gone"]
    assert said["state"] == "progressing", said["headline"]
    watch.shows("TP0", "TP1")


def test_stat_cannot_be_read_for_a_moment(watch: Watch, refuse: Callable[[str, int], None]) -> None:
    refuse("stat", errno.EIO)
    said = watch.until(lambda json: rank(json, TP1)["missing"])
    assert "EIO" in rank(said, TP1)["missing"][0]["why"]
    assert (said["state"], rank(said, TP1)["gone"]) == ("progressing", False)


def test_the_command_line_is_refused(world: World, screen: Screen, refuse: Callable[[str, int], None]) -> None:
    refuse("cmdline", errno.EACCES)
    with watching(screen, settings(world)) as watch:
        said = watch.until(lambda json: len(json["ranks"]) >= 1 and json["log"] and json["log"]["lines"])
        assert said["server"]["pid"] == LAUNCHER
        assert said["state"] in ("progressing", "unknown"), said["headline"]
        watch.shows("launcher")


def test_everything_of_another_user_is_refused(world: World, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user without rights sees: state, CPU time and command line."""
    real, real_list, real_link = os.open, os.listdir, os.readlink
    hidden = ("io", "wchan", "syscall", "maps", "environ", "mountinfo", "stack")

    def is_hidden(path: object) -> bool:
        text = str(path)
        return text.startswith(str(world.root)) and (text.endswith(hidden) or "/fd" in text or "/exe" in text)

    def refusing(function: Callable[..., object]) -> Callable[..., object]:
        def call(path: object = ".", *args: object, **more: object) -> object:
            if is_hidden(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path, *args, **more)

        return call

    monkeypatch.setattr(os, "open", refusing(real))
    monkeypatch.setattr(os, "listdir", refusing(real_list))
    monkeypatch.setattr(os, "readlink", refusing(real_link))
    with watching(screen, settings(world)) as watch:
        said = watch.until(lambda json: len(json["ranks"]) == 3 and rank(json, TP0)["missing"])
        assert rank(said, TP0)["state"] == "S"
        assert rank(said, TP0)["read_bytes_s"] is None and rank(said, TP0)["call"] is None
        assert {gap["signal"] for gap in rank(said, TP0)["missing"]} >= {"io", "syscall", "fds"}
        assert said["log"] is None or not said["log"]["lines"]
        watch.shows("TP0", "TP1")


# processes that come, go and change


def test_a_rank_vanishes(watch: Watch, world: World) -> None:
    world.fake.remove(TP1)
    said = watch.until(lambda json: json["state"] == "crashed")
    assert "TP1 (pid 120)" in said["headline"]
    assert rank(said, TP1)["exit_code"] is None and rank(said, TP1)["exit_signal"] is None
    watch.shows("CRASHED", "TP1")


def test_its_number_is_used_again(watch: Watch, world: World) -> None:
    world.fake.remove(TP1)
    world.fake.add(TP1, ["nginx"], ppid=1, start=99999)
    said = watch.until(lambda json: json["state"] == "crashed")
    assert "TP1 (pid 120)" in said["headline"]
    assert "nginx" not in watch.shows("CRASHED")


def test_it_vanishes_while_it_is_read(watch: Watch, world: World) -> None:
    """Its stat is still there, everything else is not: that is no death, and no 0."""
    folder = world.root / str(TP1)
    for name in ("io", "status", "wchan", "syscall", "maps"):
        (folder / name).unlink()
    (folder / "schedstat").write_text("1600000000 250000000 8\n")
    said = watch.until(lambda json: rank(json, TP1)["rss_anon_bytes"] is None)
    assert said["state"] == "progressing"
    assert rank(said, TP1)["wchan"] is None or rank(said, TP1)["missing"]


def test_it_becomes_a_zombie(watch: Watch, world: World) -> None:
    world.rank(TP0, "TP0", state="Z", exit_status=9)
    said = watch.until(lambda json: json["state"] == "crashed")
    assert rank(said, TP0)["exit_signal"] == 9
    watch.shows("CRASHED", "SIGKILL")


def test_the_launcher_vanishes(watch: Watch, world: World) -> None:
    world.fake.remove(LAUNCHER)
    said = watch.until(lambda json: json["state"] in ("crashed", "ended"))
    assert "100" in said["headline"] or "launcher" in said["headline"]
    watch.shows("launcher")


def test_all_vanish(watch: Watch, world: World) -> None:
    for pid in (TP0, TP1, LAUNCHER):
        world.fake.remove(pid)
    said = watch.until(lambda json: json["state"] == "crashed")
    assert said["server"]["pid"] == LAUNCHER
    watch.shows("CRASHED")


def test_a_rank_is_in_state_d(watch: Watch, world: World) -> None:
    world.rank(TP1, "TP1", state="D", wchan="rpc_wait_bit_killable")
    watch.until(lambda json: rank(json, TP1)["state"] == "D")
    watch.shows("TP1", "disk")


def test_proc_itself_goes(watch: Watch, world: World) -> None:
    """The mount of another host's /proc is taken away."""
    shutil.move(str(world.root), str(world.root) + ".away")
    said = watch.until(
        lambda json: any("process list" in gap["why"] or "proc" in gap["signal"] for gap in json["missing"])
    )
    assert said["state"] in ("progressing", "unknown"), said["headline"]
    watch.shows("failed")


def test_proc_has_no_process(world: World) -> None:
    for name in os.listdir(world.root):
        if name.isdigit():
            world.fake.remove(int(name))
    screen = Screen()  # one that has seen no server yet
    with watching(screen, settings(world)) as watch:
        said = watch.until(lambda json: json["state"] == "unknown")
        assert "there is no process list in" in said["headline"]
        watch.shows("there is no process list in")
    screen.close()


# what is written there


def test_a_weird_name(watch: Watch, world: World) -> None:
    names = [
        "a) S 1 (b",
        "x\ny",
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "\u202egnp.exe",
        "\udcff\udcfe",
        "[/bold] [@click=q]",
    ]
    for pid, comm in enumerate(names, 130):
        world.fake.add(pid, [f"{comm} --worker"], ppid=LAUNCHER, comm=comm)
    world.rank(TP1, f"TP1 {names[2]}")
    wanted = set(range(130, 130 + len(names)))
    watch.until(lambda json: wanted <= {process.pid for process in watch.snapshot.procs.processes})
    text = watch.shows("TP0", "TP1")
    assert "\x1b" not in text and "\u202e" not in text and "\x07" not in text
    assert watch.json["state"] == "progressing"


def test_a_path_of_the_log_with_escapes(tmp_path: Path, screen: Screen) -> None:
    folder = tmp_path / "a\x1b[31m\nb [bold]"
    folder.mkdir()
    world = World(folder)
    with watching(screen, settings(world)) as watch:
        watch.until(goes_on)
        text = watch.shows("TP0")
        assert "\x1b" not in text
        assert "\x1b" not in watch.json["log"]["path"]


def test_stat_is_garbage(watch: Watch, world: World) -> None:
    """What it was stands, what it is now is unknown; no process has ended for that, neither a rank nor the launcher."""
    for garbage in (b"", b"110", b"110 (x", b"\0" * 300, b"x (y) z " + b"q " * 60):
        for pid in (TP0, LAUNCHER):
            (world.root / str(pid) / "stat").write_bytes(garbage)
        watch.until(lambda _: unreadable(watch) == {TP0, LAUNCHER})
        said = watch.json
        assert not any(one["gone"] for one in said["ranks"]) and said["state"] in ("progressing", "unknown"), said
        world.launcher()
        world.rank(TP0, "TP0")
        watch.until(lambda _: not unreadable(watch))
    assert watch.snapshot.restarts == 0


def unreadable(watch: Watch) -> set[int]:
    """Pids of the processes whose last reading stands."""
    return {p.pid for p in watch.snapshot.procs.processes if any(gap.signal == "proc" for gap in p.missing)}


def test_other_files_are_garbage(watch: Watch, world: World) -> None:
    for name in ("status", "io", "wchan", "syscall", "maps", "cgroup", "mountinfo", "schedstat"):
        (world.root / str(TP0) / name).write_bytes(b"\xff\0garbage 99999999999999999999999 -- \n" * 3)
    world.listens(1)
    (world.root / str(LAUNCHER) / "net" / "tcp").write_bytes(b"\xff" * 500)
    said = watch.until(lambda json: rank(json, TP0)["rss_anon_bytes"] is None)
    assert said["state"] in ("progressing", "unknown")
    watch.shows("TP0", "TP1")


def test_parents_in_a_ring(watch: Watch, world: World) -> None:
    world.fake.add(210, ["python", "a.py"], ppid=211)
    world.fake.add(211, ["python", "b.py"], ppid=210)
    world.fake.add(212, ["python", "c.py"], ppid=212)
    seen = watch.snapshot.t
    watch.until(lambda json: watch.snapshot.t > seen + 1.0)
    assert watch.json["state"] == "progressing"


# much of it


def test_a_hundred_thousand_descriptors(watch: Watch, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real_list, real_link = os.listdir, os.readlink
    folder = str(world.root / str(TP0) / "fd")
    names = [str(number) for number in range(100_000)]

    def listed(path: object = ".") -> list[str]:
        return names if str(path) == folder else real_list(path)  # type: ignore[arg-type]

    def linked(path: object, **more: object) -> str:
        text = str(path)
        if text.startswith(folder):
            return str(world.log) if text.endswith(("/1", "/2")) else f"socket:[{text[-5:]}]"
        return real_link(path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(worker_module, "FDS_EVERY_S", 5.0)
    monkeypatch.setattr(os, "listdir", listed)
    monkeypatch.setattr(os, "readlink", linked)
    watch.clock.shift_s = 6.0
    watch.until(lambda json: any(p.fd_count == 100_000 for p in watch.snapshot.procs.processes))
    watch.shows("TP0")


def test_five_thousand_threads(watch: Watch, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real_list, real_open = os.listdir, os.open
    folder = str(world.root / str(TP0) / "task")
    names = [str(TP0), *(str(number) for number in range(10_000, 14_999))]
    line = stat_line(TP0, "worker", "S", LAUNCHER, 5000, TP0 * 10)
    for name in ("stat", "schedstat"):
        text = line if name == "stat" else b"1500000000 250000000 7\n"
        (world.root / f"thread-{name}").write_bytes(text)

    def listed(path: object = ".") -> list[str]:
        return names if str(path) == folder else real_list(path)  # type: ignore[arg-type]

    def opened(path: object, *args: object, **more: object) -> int:
        text = str(path)
        if text.startswith(folder):
            path = str(world.root / f"thread-{os.path.basename(text)}")
        return real_open(path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "listdir", listed)
    monkeypatch.setattr(os, "open", opened)
    world.rank(TP0, "TP0", threads=5000)
    watch.until(lambda json: any(dict(p.thread_states).get("S") == 5000 for p in watch.snapshot.procs.processes))
    watch.shows("TP0")
