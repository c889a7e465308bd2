"""py-spy that is missing, old, refused, hung or talks nonsense: the page of stacks says why there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sgmon.collect.probes import pyspy as pyspy_module
from sgmon.collect.probes import pyspy_dump
from sgmon.collect.probes.base import Probe, Watched
from sgmon.collect.probes.pyspy import StackProbe
from sgmon.collect.source import LiveSource
from sgmon.model import Process, ProcsReading, Reading, Role, Server, ServerArgs, ServerReading
from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.watching import Watch, watching

FAULTS = [
    ("missing", None, "py-spy is not installed beside sgmon"),
    ("hangs", "exec sleep 60", "did not return in time"),
    (
        "refused",
        "echo 'Error: Permission Denied: Try running again with elevated permissions' >&2; exit 1",
        "refused",
    ),
    ("old", "echo \"error: Found argument '--nonblocking' which wasn't expected\" >&2; exit 2", "nonblocking"),
    ("garbage", "echo hello", "cannot be read"),
    ("nothing", "exit 0", "cannot be read"),
    ("another-shape", "echo '{\"a\": [1]}'", "not a list of threads"),
    ("half", 'echo \'[{"pid": 1, "thread_id"\'', "cannot be read"),
    ("crashes", "kill -SEGV $$", ""),
    ("escapes", "printf 'Error: \\033[31m\\033]0;t\\007 bad\\n' >&2; exit 1", "bad"),
    ("endless", "exec yes '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[['", ""),
    ("no-program", "", "could not be started"),
]


class Said:
    """A probe that says one thing."""

    interval_s = 0.2
    deadline_s = 30.0

    def __init__(self, kind: str, reading: Reading) -> None:
        self.name = self.kind = kind
        self._reading = reading

    def read(self) -> Reading:
        return self._reading

    def close(self) -> None: ...


@pytest.fixture(scope="module")
def target() -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that waits, as TP0."""
    with subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.kill()


@pytest.fixture
def watch(screen: Screen, target: subprocess.Popen[bytes]) -> Iterator[Watch]:
    pid = target.pid
    server = Server(pid, 1, args=ServerArgs(tp=1, model_path="m"), argv=("python",), version="0.5.23")
    rank = Process(pid=pid, ppid=os.getpid(), start_ticks=0, role=Role.WORKER, rank="TP0", state="S", cpu_s=1.0)

    def make(watched: Watched, source: LiveSource) -> list[Probe]:
        watched.server = server
        stacks = StackProbe(watched, lambda: source.processes)
        return [Said("server", ServerReading(server)), Said("procs", ProcsReading((rank,))), stacks]

    with watching(screen, Settings(interval_s=0.2), make) as made:
        made.until(lambda json: json["ranks"])
        yield made


@pytest.mark.parametrize(("script", "words"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_there_is_no_stack(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, words: str
) -> None:
    monkeypatch.setattr(pyspy_dump, "DUMP_S", 1.0)
    path = tmp_path / "py-spy"
    path.write_text(f"#!/bin/sh\n{script}\n" if script else "#!/nonexistent\n")
    path.chmod(0o755)
    monkeypatch.setattr(pyspy_module, "find_pyspy", lambda: None if script is None else str(path))
    watch.shows("TP0")
    watch.screen.press("D")
    watch.until(lambda json: watch.snapshot.stacks and watch.snapshot.stacks[-1].error)
    dump = watch.snapshot.stacks[-1]
    assert words in dump.error, dump.error
    assert not dump.threads
    text = watch.shows("TP0", " ".join(dump.error.split()[:4]))
    assert "\x1b" not in text and "\x07" not in text
    watch.screen.press("escape")


def test_no_memory_for_py_spy(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(pyspy_module, "find_pyspy", lambda: "/bin/true")
    monkeypatch.setattr(pyspy_dump.subprocess, "Popen", refuse)
    watch.shows("TP0")
    watch.screen.press("D")
    watch.until(lambda json: watch.snapshot.stacks and watch.snapshot.stacks[-1].error)
    watch.shows("could not be started")
    watch.screen.press("escape")


def test_the_target_is_gone(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    same: Callable[..., bool] = lambda *args: False  # noqa: E731
    monkeypatch.setattr(pyspy_module, "same_process", same, raising=False)
    number = watch.engine.request_stacks([4194302])
    assert number is not None
    watch.until(lambda json: any(dump.pid == 4194302 for dump in watch.snapshot.stacks))
    assert watch.snapshot.stacks[-1].error == "the process is gone"
