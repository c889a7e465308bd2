"""A whole watch seen by strace: sgmon signals, traces and writes nothing of the server, and asks nobody but its port."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from sgmon import demo
from tests.e2e.terminal import LIMIT_S, Terminal
from tests.security import tracing
from tests.security.tracing import Call

pytestmark = pytest.mark.skipif(bool(tracing.why_not()), reason=tracing.why_not() or "strace works")

#: devices that are nobody's file
_DEVICES = re.compile(r"/dev/(?:null|tty|ptmx|pts/\d+)$")
#: what Python, SQLite and OpenMP make for themselves; a compiled module is Python's own
_OWN = re.compile(r"/__pycache__(?:/|$)|^/proc/self/")
#: NCCL's RAS port, which key D asks (docs/stacks.md)
_RAS_PORT = 28028


class Traced(NamedTuple):
    calls: list[Call]
    server_pids: set[int]
    port: int
    state: Path
    folder: Path


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """The dashboard on a server one of whose ranks is stopped, until it says so, with the keys that look deepest."""
    folder = tmp_path_factory.mktemp("traced")
    state, out = folder / "state", folder / "calls"
    pids: set[int] = set()

    class TracedTerminal(Terminal):
        def run(self, argv: list[str], env: dict[str, str]) -> None:
            os.chdir(folder)
            env |= {"XDG_STATE_HOME": str(state), "TMPDIR": str(folder)}
            command = [*tracing.STRACE, "-o", str(out), *argv]
            os.execvpe(command[0], command, env)

    with demo.start("stopped", tp=2, speed=8.0) as server:
        options = ["--pid", str(server.pid), "--port", str(server.port)]
        with TracedTerminal(*options) as terminal:
            terminal.until(lambda text: "STOPPED" in text)
            for keys, shown in (
                ("D", "stacks"),
                ("\x1b", "STOPPED"),
                ("4", "STOPPED"),
                ("v", "next"),
                ("\x1b", "STOPPED"),
            ):
                terminal.press(keys)
                terminal.until(lambda text, shown=shown: shown in text)  # type: ignore[misc]
            terminal.press("\x12")  # ctrl+r: a recording of the last minutes
            terminal.until(lambda _: any((state / "sgmon").glob("flights/*.gz")))
            family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            pids = {process.pid for process in family}
            guard = family[0].parent()
            pids |= {guard.pid} if guard is not None and guard.pid != os.getpid() else set()
            terminal.press("\x11")
            assert terminal.wait() == 0
    calls = list(tracing.calls_in(out))
    assert len(calls) > 500 and len(pids) >= 3
    return Traced(calls, pids, server.port, state, folder)


def test_it_signals_and_traces_nobody(watch: Traced) -> None:
    """A signal to a child of its own (py-spy at the end) is one to a process that it started."""
    own = {call.pid for call in watch.calls}
    for call in watch.calls:
        if call.name not in tracing.TOUCHING:
            continue
        numbers = {int(number) for number in re.findall(r"(?<![\w.])-?\d+", call.args)}
        assert not numbers & watch.server_pids, call.words
        assert not {-pid for pid in watch.server_pids} & numbers, call.words
        assert call.name != "ptrace", call.words
        if call.name in ("kill", "tgkill", "tkill"):
            target = int(call.args.split(",")[0].split("<")[0])
            assert abs(target) in own, call.words


def test_it_writes_into_its_own_folder_alone(watch: Traced) -> None:
    others = {
        call.words
        for call in watch.calls
        if call.writes and not _DEVICES.match(call.path) and not _OWN.search(call.path)
        and not call.path.startswith(f"{watch.state}/sgmon/") and call.path not in (str(watch.state), f"{watch.state}/sgmon")
        and "O_TMPFILE" not in call.args and not call.path.startswith(f"{watch.folder}/")
    }  # fmt: skip
    assert others == set()
    assert any(call.writes and "/flights/" in call.path for call in watch.calls), "nothing was seen"


def test_it_opens_nothing_of_the_server_to_write(watch: Traced) -> None:
    for call in watch.calls:
        of_server = re.match(r"/proc/(\d+)/", call.path)
        if of_server and int(of_server[1]) in watch.server_pids:
            assert not call.writes, call.words


def test_it_asks_nobody_but_the_port(watch: Traced) -> None:
    asked = set()
    for call in watch.calls:
        if call.name != "connect" or "sa_family=AF_UNSPEC" in call.args:
            continue
        port, address = (
            re.search(r"htons\((\d+)\)", call.args),
            re.search(r'inet_(?:addr|pton)\((?:\w+, )?"([^"]+)"', call.args),
        )
        if port is not None and address is not None:
            asked.add((address[1], int(port[1])))
        else:
            assert "AF_NETLINK" in call.args or "/nscd/" in call.args, call.words
    assert {address for address, _ in asked} <= {"127.0.0.1", "::1"}, asked
    assert {port for _, port in asked} <= {watch.port, _RAS_PORT}, asked
    assert asked, "nothing was seen"


def test_it_starts_nothing_but_its_own_programs(watch: Traced) -> None:
    started = {Path(call.path).name for call in watch.calls if call.name == "execve" and call.result.startswith("0")}
    assert started <= {Path(sys.executable).name, Path(sys.executable).resolve().name, "py-spy"}, started


def test_the_collector_leaves_nothing_on_the_other_machine(tmp_path: Path) -> None:
    """The collector of ``sgmon --host``: from its start to its end it opens no file to write, and signals nobody."""
    out = tmp_path / "calls"
    via = shlex.join([*tracing.STRACE, "-o", str(out), "env", "SGMON_TEST={}"])
    with demo.start("healthy", tp=2, speed=2.0) as server:
        run = subprocess.run(
            [
                *(sys.executable, "-m", "tui_app.cli", "status", "--json", "--host", "there", "--via", via),
                *("--remote-python", sys.executable, "--pid", str(server.pid)),
            ],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        pids = {server.pid, *(process.pid for process in psutil.Process(server.pid).children(recursive=True))}
    said = json.loads(run.stdout)
    assert said["server"]["pid"] == server.pid, run.stderr
    calls = list(tracing.calls_in(out))
    assert len(calls) > 100
    written = {call.words for call in calls if call.writes and not _DEVICES.match(call.path)}
    assert written == set(), "nothing is left on its disk, not even a compiled module"
    for call in calls:
        if call.name in tracing.TOUCHING:
            assert not {int(n) for n in re.findall(r"\d+", call.args)} & pids, call.words
