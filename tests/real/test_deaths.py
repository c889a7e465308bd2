"""Real servers of which one process dies: who is named, and after how many seconds; and ends that are no crash."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.real import measured
from tests.real.server import HOME, RealServer, drop_page_cache, real_server, until
from tests.real.watching import Watcher, watching

#: a line that tells the order is awaited for 2.5 s; readings of a busy machine come late
NAMED_S = 8.0
_MEMORY = Path("/sys/fs/cgroup/memory")
_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")


def _pid(server: RealServer, who: str, phase: str) -> int:
    if who == "launcher":
        return server.pid
    place = {"TP0": 0, "TP1": 1, "detokenizer": 2}[who]
    if phase == "import":
        return server.wait_for_workers(3)[place]
    return server.wait_for_title("sglang::detokenizer" if place == 2 else f"sglang::scheduler_{who}")


def _reach(server: RealServer, watcher: Watcher, phase: str) -> None:
    if phase == "ready":
        assert watcher.wait_for("ready", "crashed").state == "ready"
    elif phase == "load":
        server.wait_for_line("TP1] Load weight begin")
    else:
        server.wait_for_workers(3)
    time.sleep(1.5 if phase != "load" else 0.0)


def _named(watcher: Watcher, fault_at: float, who: str, words: str) -> float:
    """Seconds until the headline says how this one ended; no other was named before."""
    until(
        lambda: (
            any(one.at >= fault_at and words in one.verdict.headline for one in watcher.said)
            or words in watcher.snapshot.verdict.headline
        ),
        NAMED_S + 20.0,
        f"{words!r}\n{watcher.history()}",
    )
    took = time.time() - fault_at
    said = [one for one in watcher.said if one.at >= fault_at and one.state == "crashed"]
    wrong = [s for s in said if who not in s.verdict.headline and "not known yet" not in s.verdict.headline]
    assert not wrong, watcher.history()
    return took


@pytest.mark.parametrize("phase", ["import", "load", "ready"])
@pytest.mark.parametrize("who", ["launcher", "TP0", "TP1", "detokenizer"])
def test_the_killed_process_is_named(who: str, phase: str, tmp_path: Path) -> None:
    if phase == "load":
        drop_page_cache(HOME / "models" / "mid")
    with (
        real_server(tmp_path, "mid" if phase == "load" else "tiny", "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        _reach(server, watcher, phase)
        victim = _pid(server, who, phase)
        fault_at = time.time()
        os.kill(victim, signal.SIGKILL)
        name = "the launcher" if who == "launcher" else f"(pid {victim})"
        words = f"{name} was killed by SIGKILL"
        took = _named(watcher, fault_at, name, words)
        print(f"DEATH {who} {phase} named after {took:.1f} s: {watcher.snapshot.verdict.headline}")
        until(lambda: watcher.snapshot.verdict.rule != "process-gone-open", 20, "a settled verdict")
        time.sleep(6.0)
        verdict = watcher.snapshot.verdict
        assert (verdict.state, words in verdict.headline) == ("crashed", True), watcher.history()
        first = watcher.first("crashed", after=fault_at)
        assert first is not None
        measured.fault(f"{who} killed: {phase}", watcher, fault_at, first)


@pytest.mark.parametrize("phase", ["load", "ready"])
def test_of_two_that_are_killed_at_once_no_third_is_named(phase: str, tmp_path: Path) -> None:
    """TP0 and TP1 in one moment: both, or one of them, and never the launcher that ends for them."""
    if phase == "load":
        drop_page_cache(HOME / "models" / "mid")
    with (
        real_server(tmp_path, "mid" if phase == "load" else "tiny", "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        _reach(server, watcher, phase)
        victims = {rank: _pid(server, rank, phase) for rank in ("TP0", "TP1")}
        fault_at = time.time()
        for pid in victims.values():
            os.kill(pid, signal.SIGKILL)
        first = watcher.wait_for("crashed", after=fault_at, timeout_s=30)
        until(lambda: server.ended, 60, "the end of the server")
        time.sleep(6.0)
        said = [one.verdict for one in watcher.said if one.at >= fault_at and one.state == "crashed"]
        assert all(set(one.odd_ranks) <= set(victims) for one in said), watcher.history()
        assert all(any(f"(pid {pid})" in one.headline for pid in victims.values()) for one in said), watcher.history()
        assert watcher.snapshot.verdict.state == "crashed", watcher.history()
        print(f"DEATH two {phase} after {first.at - fault_at:.1f} s: {watcher.snapshot.verdict.headline}")
        measured.fault(f"TP0 and TP1 killed: {phase}", watcher, fault_at, first)


@pytest.mark.parametrize(("number", "phase"), [("SIGINT", "import"), ("SIGTERM", "load"), ("SIGTERM", "ready")])
def test_a_server_that_is_asked_to_end_has_ended(number: str, phase: str, tmp_path: Path) -> None:
    with (
        real_server(tmp_path, "tiny", "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        _reach(server, watcher, phase)
        asked_at = time.time()
        if number == "SIGINT":
            os.killpg(server.pid, signal.SIGINT)  # as a terminal does
        else:
            os.kill(server.pid, signal.SIGTERM)
        ended = watcher.wait_for("ended", after=asked_at, timeout_s=60)
        until(lambda: server.ended, 60, "the end of the server")
        time.sleep(4.0)
        print(f"ENDED {number} {phase} after {ended.at - asked_at:.1f} s: {watcher.snapshot.verdict.headline}")
        measured.fault(f"{number} to the server: {phase}", watcher, asked_at, ended)
        assert watcher.snapshot.verdict.state == "ended", watcher.history()
        settled = [one for one in watcher.said if one.at >= asked_at and one.verdict.rule != "process-gone-open"]
        assert "crashed" not in {one.state for one in settled}, watcher.history()


def test_tokenizer_workers_that_are_started_anew_are_no_crash(tmp_path: Path) -> None:
    with (
        real_server(tmp_path, "tiny", "--tokenizer-worker-num", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        assert watcher.wait_for("ready", "crashed").state == "ready", watcher.history()
        worker = next(pid for pid in server.tree() if b"sglang::tokenizer_worker" in _title(pid))
        killed_at = time.time()
        os.kill(worker, signal.SIGKILL)
        time.sleep(15.0)
        assert "crashed" not in watcher.states(), watcher.history()
        print(f"DEATH tokenizer worker ready: {watcher.states(killed_at)} {watcher.snapshot.verdict.headline}")


@pytest.mark.parametrize("whose", ["TP1", "all"])
def test_the_oom_killer_is_named(whose: str, tmp_path: Path) -> None:
    """A control group with too little memory, for one rank or for the whole server."""
    with (
        _group(f"sgmon-test-{os.getpid()}") as group,
        real_server(tmp_path, "tiny", "--tp", "2") as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        rank = server.wait_for_workers(3)[1]
        for pid in [rank] if whose == "TP1" else server.tree():
            (group / "cgroup.procs").write_text(str(pid))
        time.sleep(10.0)  # the group of each process is read each five seconds
        fault_at = time.time()
        limit = group / ("memory.max" if _UNIFIED.exists() else "memory.limit_in_bytes")
        used = int((group / limit.name.replace("max", "current").replace("limit", "usage")).read_text())
        limit.write_text(str(used + (8 << 20)))
        crash = watcher.wait_for("crashed", after=fault_at, timeout_s=120)
        time.sleep(6.0)
        verdict = watcher.snapshot.verdict
        measured.fault(f"OOM killer: {whose}", watcher, fault_at, crash)
        print(f"OOM {whose}: {crash.at - fault_at:.1f} s after the limit: {verdict.headline} {verdict.evidence}")
        assert "OOM killer" in verdict.headline, watcher.history()
        if whose == "TP1":
            assert verdict.odd_ranks == ("TP1",)


@contextmanager
def _group(name: str) -> Iterator[Path]:
    root = _UNIFIED.parent if _UNIFIED.exists() else _MEMORY
    own = next((x.split(":")[2] for x in Path("/proc/self/cgroup").read_text().splitlines() if "memory" in x), "")
    group = Path(f"{root}{own}") / name
    try:
        group.mkdir()
    except OSError as err:
        pytest.skip(f"no control group can be made here: {err}")
    try:
        yield group
    finally:
        until(lambda: not (group / "cgroup.procs").read_text().split(), 30, "an empty group")
        group.rmdir()


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
