"""Starts that build their kernels are another kind than those that find them in a cache."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon.analyse.builds import builds
from sgmon.analyse.store import Store
from sgmon.collect.probes.start import describe
from sgmon.history.baseline import baseline
from sgmon.history.from_snapshot import key_of, start_of
from sgmon.model import Compiler, Event, LogReading, ProcsReading, Server, Snapshot
from tests.memory import watches

AUTOTUNE = "SingleProcess AUTOTUNE benchmarking takes 1.3672 seconds and 8.3651 seconds precompiling\n"
GRAPH = "[2026-01-29 13:13:51 TP0] Compiling a graph for dynamic shape takes 45.12 s\n"


def start(text: str = "", *, compilers_s: tuple[float, ...] = (), cache_files: int | None = None) -> Snapshot:
    """A start with this text before its own log; of each compiler its CPU seconds."""
    store = Store(watches.EPOCH)
    for event in watches.events(text or "x\n", 1.0):
        if event.kind == "start":
            event = replace(event, reading=replace(watches.START, cache_files=cache_files))
        store.step(event)
    for at, cpu_s in enumerate(compilers_s):
        procs = store.snapshot.procs.processes
        made = Compiler(5000 + at, "cicc", "kernel.cu", cpu_s)
        store.step(Event(2.0 + at, "procs", ProcsReading((replace(procs[0], compilers=(made,)), *procs[1:]))))
        store.step(Event(2.5 + at, "procs", ProcsReading(procs)))  # it has ended
    return store.snapshot


def ready(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, verdict=replace(snapshot.verdict, state="ready"))


@pytest.mark.parametrize(
    ("how", "built"),
    [
        ({}, False),
        ({"compilers_s": (0.9,)}, False),  # a stub is compiled in every start
        ({"compilers_s": (0.9, 1.2, 1.5)}, True),
        ({"text": AUTOTUNE}, True),
        ({"text": GRAPH}, True),
        ({"cache_files": 0}, True),  # nothing is there that could be found
        ({"cache_files": 12}, False),
    ],
)
def test_what_shows_that_a_start_builds(how, built):
    snapshot = start(**how)
    assert builds(snapshot) is built
    key = key_of(snapshot)
    assert key is not None and key.caches == ("warm, kernels built" if built else "warm")


def test_an_empty_cache_is_a_guess_that_the_end_decides():
    assert not builds(ready(start(cache_files=0))), "it is ready, and nothing was built"
    assert builds(ready(start(cache_files=0, compilers_s=(30.0,))))


def test_a_line_of_vllm_that_tells_of_the_cache():
    store = Store(watches.EPOCH)
    for event in watches.events("x\n", 1.0):
        if event.kind == "server":
            event = replace(event, reading=replace(event.reading, server=replace(watches.SERVER, family="vllm")))
        if event.kind == "start":
            event = replace(event, reading=replace(watches.START, cache_files=0))
        store.step(event)
    assert builds(store.snapshot)
    line = (
        "(Worker_TP0 pid=103) INFO 11-29 12:00:00 [backends.py:165] Directly load the compiled graph(s) for dynamic"
        " shape from the cache, took 3.512 s\n"
    )
    store.step(Event(3.0, "log", LogReading(path="/nowhere/server.log", text=line, kind="pipe", offset=2, size=500)))
    assert not builds(store.snapshot)


def test_a_cold_start_is_not_what_is_usual_for_a_warm_one():
    cold, warm = (start_of(ready(start(compilers_s=(s,))), "ready") for s in (60.0, 0.5))
    now = key_of(start())
    assert now is not None
    only_cold = baseline([cold] * 9, now)
    assert only_cold is not None and not only_cold.narrow and "other caches" in only_cold.like
    both = baseline([cold, warm, cold], now)
    assert both is not None and (both.narrow, both.count) == (True, 1)


def test_files_in_the_caches_are_counted_when_the_start_is_first_seen(tmp_path):
    environ = {"HOME": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "USER": "u"}
    with subprocess.Popen(["sleep", "60"], env=environ) as child:
        while not Path(f"/proc/{child.pid}/environ").read_bytes():  # blank for a moment while it is executed
            os.sched_yield()
        server = Server(child.pid, 1)
        assert describe("/proc", server).cache_files == 0
        (tmp_path / ".triton/cache/ab").mkdir(parents=True)
        (tmp_path / ".triton/cache/ab/kernel.cubin").write_text("")
        assert describe("/proc", server).cache_files == 1
        child.kill()
