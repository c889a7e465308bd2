"""Terminals of one cell, dumb ones, closed ones, and signals: a real process in a real terminal where it matters."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.watching import watching
from tests.faults.world import World
from tests.recorded import RECORDINGS
from tests.ui import fakes
from tests.ui.screen import resize, running, text_of
from tests.ui.test_terminal import Terminal, closing, is_restored

LIMIT_S = 90.0


async def test_a_tiny_terminal() -> None:
    """Nothing fails, keys are answered, and with room again everything stands there."""
    async with running(fakes.stuck(), size=(1, 1)) as (app, _, pilot):
        for width, height in ((1, 1), (2, 1), (1, 40), (300, 1), (5, 2), (20, 3)):
            await resize(pilot, width, height)
            for key in ("v", "escape", "question_mark", "escape", "4", "z", "z", "1"):
                app.simulate_key(key)
            await pilot.pause()
        await resize(pilot, 120, 40)
        await pilot.pause()
        assert "STALLED" in text_of(app)


async def test_down_to_one_cell_and_back() -> None:
    async with running(fakes.stuck()) as (app, _, pilot):
        for width, height in ((40, 10), (10, 4), (1, 1), (120, 40)):
            await resize(pilot, width, height)
            await pilot.pause()
        assert "STALLED" in text_of(app)


@pytest.fixture
def dumb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """The preview of a stuck start, with a TERM that knows nothing."""
    real = os.execve

    def execve(path: str, argv: list[str], env: dict[str, str]) -> None:
        real(path, argv, {**env, "TERM": "dumb"})

    monkeypatch.setattr(os, "execve", execve)
    with closing(Terminal("tests.ui.preview", "stuck")) as child:
        yield child


@pytest.mark.slow
def test_a_dumb_terminal(dumb: Terminal) -> None:
    dumb.read_until(b"STALLED", LIMIT_S)
    os.write(dumb.fd, b"qq")
    dumb.drain(LIMIT_S)
    assert dumb.end() == 0


def without_hangups(*program: str) -> Terminal:
    """As under nohup: nobody tells it by SIGHUP that the window is gone."""
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        return Terminal(*program)
    finally:
        signal.signal(signal.SIGHUP, old)


@pytest.mark.slow
def test_the_terminal_is_closed() -> None:
    terminal = without_hangups("tui_app.cli", "replay", str(RECORDINGS / "cpu-tp2-tiny.jsonl.gz"))
    terminal.read_until(b"quit", LIMIT_S)
    os.close(terminal.fd)
    assert ended(terminal.pid) == 128 + signal.SIGHUP, "it outlives its terminal"


@pytest.mark.slow
def test_the_terminal_of_a_command_is_closed() -> None:
    """Found by writing: an exit code that says so, not one of a verdict."""
    terminal = without_hangups(
        "tui_app.cli", "wait", "--timeout", "2", "--no-gpu", "--proc-root", "/proc/self/fdinfo"
    )
    terminal.read_until(b"waiting:", LIMIT_S)
    os.close(terminal.fd)
    assert ended(terminal.pid) == 128 + signal.SIGHUP


@pytest.mark.slow
def test_it_is_shrunk_to_nothing_and_asked_to_end() -> None:
    with closing(Terminal("tests.ui.preview", "stuck")) as terminal:
        terminal.read_until(b"STALLED", LIMIT_S)
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.drain(LIMIT_S)
        assert terminal.end() == 128 + signal.SIGTERM
        assert is_restored(terminal.output)


def ended(pid: int) -> int | None:
    """The exit code; None, and it is killed, when it does not end."""
    watched = os.pidfd_open(pid)
    try:
        is_over = bool(select.select([watched], [], [], LIMIT_S)[0])
    finally:
        os.close(watched)
    if not is_over:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if is_over else None


# commands without a screen


def started(world: World, *words: str, program: str = "tui_app.cli", **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", program, *words, "--no-gpu", "--proc-root", str(world.fake)]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH", "")]))}
    options: dict[str, object] = {"stdout": -1, "stderr": -1, "text": True, "env": own, **more}
    return subprocess.Popen(command, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_wait(world: World, number: signal.Signals) -> None:
    with started(world, "wait", "--timeout", "300") as child:
        deadline = time.monotonic() + LIMIT_S
        while len(os.listdir(f"/proc/{child.pid}/task")) < 4:  # its probes run
            assert time.monotonic() < deadline, "it watches nothing"
            time.sleep(0.05)
        child.send_signal(number)
        _, said = child.communicate(timeout=LIMIT_S)
        assert child.returncode == 128 + number, said  # as a shell sees it
        assert "Traceback" not in said


@pytest.mark.parametrize("words", [("wait", "--timeout", "300"), ("record", "FILE")])
def test_a_signal_comes_while_the_main_thread_holds_a_lock(
    world: World, tmp_path: Path, words: tuple[str, ...]
) -> None:
    named = [str(tmp_path / "start.jsonl") if word == "FILE" else word for word in words]
    with started(world, *named, program="tests.faults.interrupted") as child:
        try:
            _, said = child.communicate(timeout=LIMIT_S)
        finally:
            child.kill()
        assert child.returncode >= 0 and "Traceback" not in said, said


def test_nobody_reads_the_output(world: World) -> None:
    """`sgmon status --json | true`."""
    with started(world, "status", "--json") as child:
        assert child.stdout is not None
        child.stdout.close()
        child.stdout = None
        _, said = child.communicate(timeout=LIMIT_S)
        assert "Traceback" not in said
        assert child.returncode == 128 + signal.SIGPIPE, "no verdict was told"


@pytest.mark.parametrize("command", ["status --json --no-gpu --proc-root", "log - --against"])
def test_all_three_streams_are_closed(world: World, command: str) -> None:
    named = world.log if "log" in command else world.fake
    words = f"exec {sys.executable} -m tui_app.cli {command} {named} <&- >&- 2>&-"
    own = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(["sh", "-c", words], env=own, timeout=LIMIT_S, check=False)
    assert done.returncode == 4  # of the verdict: no signal and no error has ended it


@pytest.mark.parametrize("count", [16])
def test_few_descriptors(world: World, count: int) -> None:
    """`ulimit -n 16`: a sentence or an answer, no traceback, and never a crash of the server."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))

    with started(world, "status", "--json", preexec_fn=limit) as child:
        out, said = child.communicate(timeout=LIMIT_S)
        assert "Traceback" not in said, said
        assert '"state":"crashed"' not in out
        assert child.returncode != 5


def test_little_memory(world: World) -> None:
    """An address space of 300 MB is enough for one look."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

    with started(world, "status", "--json", preexec_fn=limit) as child:
        out, said = child.communicate(timeout=LIMIT_S)
        assert '"pid":100' in out, said


def test_in_a_cgroup_with_few_tasks(world: World) -> None:
    """pids.max as a container sets it: no thread can be started, which is said; no traceback."""
    group = Path("/sys/fs/cgroup/pids") / f"sgmon-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "pids.max").write_text("3")
    except OSError as err:
        pytest.skip(f"no control group can be made here: {err.strerror}")

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    try:
        with started(world, "status", "--json", preexec_fn=enter) as child:
            out, said = child.communicate(timeout=LIMIT_S)
        assert "Traceback" not in said, said
        assert '"state":"crashed"' not in out
        assert '"state":"unknown"' in out and "can start no thread" in out, out + said
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)  # until the last of its tasks is reaped


def test_in_a_cgroup_that_is_throttled(world: World, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings that find no place are counted, and that is said; log text is never lost."""
    from sgmon.collect import source as source_module

    monkeypatch.setattr(source_module, "FULL_S", 0.0)
    monkeypatch.setattr(source_module, "QUEUE_SIZE", 1)
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
        watch.until(lambda json: json["log"] and json["log"]["lines"] == 5)
        with watch._news:  # the engine waits for its subscriber: it gets no CPU time
            deadline = time.monotonic() + LIMIT_S
            while not watch.engine.source.dropped and time.monotonic() < deadline:  # type: ignore[attr-defined]
                time.sleep(0.05)
        watch.until(lambda json: any("lost so far" in gap["why"] for gap in json["missing"]))
        world.says("not lost")
        watch.until(lambda json: json["log"]["last_line"] == "not lost")
