"""Limits on sgmon itself: no descriptors, no threads, no memory, and an engine that fails."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.watching import Watch, watching
from tests.faults.world import World

HUNG_UP = {"crashed", "stalled", "suspect", "stopped", "ended", "waiting"}


@pytest.fixture
def watch(world: World, screen: Screen) -> Iterator[Watch]:
    """Of a start that goes on."""
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as made:
        made.until(lambda json: json["state"] == "progressing" and json["log"]["lines"] and json["port"])
        yield made


@pytest.fixture
def refuse(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From now on what sgmon opens below its /proc fails with this error."""

    def begin(number: int) -> None:
        real, real_list = os.open, os.listdir

        def opened(path, *args, **more):  # type: ignore[no-untyped-def]
            if str(path).startswith(str(world.root)):
                raise OSError(number, os.strerror(number), path)
            return real(path, *args, **more)

        def listed(path="."):  # type: ignore[no-untyped-def]
            if str(path).startswith(str(world.root)):
                raise OSError(number, os.strerror(number), path)
            return real_list(path)

        monkeypatch.setattr(os, "open", opened)
        monkeypatch.setattr(os, "listdir", listed)

    return begin


@pytest.mark.parametrize(
    ("number", "words"), [(errno.EMFILE, "no file descriptors left"), (errno.ENOMEM, "no memory left")]
)
def test_nothing_more_can_be_opened(watch: Watch, refuse: Callable[[int], None], number: int, words: str) -> None:
    """What sgmon lacks itself tells nothing of the server: nobody has died, and nobody is silent."""
    refuse(number)
    watch.until(lambda json: any(words in gap["why"] for gap in json["missing"]))
    assert watch.json["state"] == "progressing"
    watch.shows("/proc failed: sgmon has no", "TP0", "TP1")
    watch.clock.shift_s = 600.0
    said = watch.until(lambda json: json["state"] != "progressing")
    assert said["state"] == "unknown", said["headline"]
    watch.shows("UNKNOWN")


def test_no_thread_can_be_started(world: World, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    real = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name.startswith("probe-port"):
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
        said = watch.until(lambda json: any("can start no thread" in gap["why"] for gap in json["missing"]))
        assert said["port"] is None
        watch.shows("TP0", "TP1", "port failed: sgmon can start no thread")
        monkeypatch.setattr(threading.Thread, "start", real)
        watch.until(lambda json: json["port"] and not json["missing"])


def test_no_memory_in_a_probe(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    from sgmon.collect.probes import procs

    def fail(self: object, server: object) -> None:
        raise MemoryError

    monkeypatch.setattr(procs.Tree, "read", fail)
    watch.until(lambda json: any("no memory left" in gap["why"] for gap in json["missing"]))
    watch.shows("/proc failed: sgmon has no memory left")


def test_a_probe_with_a_defect(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    from sgmon.collect.probes import port

    def fail(self: object, server: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(port.PortProbe, "_look", fail)
    said = watch.until(lambda json: any("KeyError" in gap["why"] for gap in json["missing"]))
    assert any("please report it" in gap["remedy"] for gap in said["missing"])
    watch.shows("port failed: KeyError")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_engine_fails(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen must not go on showing what was, as if it were so now."""

    def fail(event: object) -> None:
        raise ValueError("boom")

    monkeypatch.setattr(watch.engine.store, "step", fail)
    said = watch.until(lambda json: json["rule"] == "engine-failed")
    assert (said["state"], said["headline"]) == (
        "unknown",
        "sgmon has failed and watches no more: ValueError: boom",
    )
    watch.shows("UNKNOWN", "sgmon has failed and watches no more", "start sgmon again")
    watch.engine.failure = ""  # it was meant
