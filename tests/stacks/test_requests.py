"""Dumps in the snapshot: each once, with the number of its request; what they show together is there with them."""

from __future__ import annotations

import gc
import re
from importlib.resources import files

import pytest
from msgspec.structs import replace

from sgmon.analyse.stacks.pattern import PatternIndex
from sgmon.analyse.stacks.requests import KEPT_DUMPS, KEPT_VIEWS, with_reading
from sgmon.analyse.store import Store
from sgmon.model import Event, ProcsReading, Role, Server, ServerReading, Snapshot, StackDump, StacksReading
from sgmon.model.procs import Process
from tests.recorded import recording
from tests.stacks.stack_files import made, recorded

START = Snapshot(server=Server(1, 1), t=5.0)


def test_readings_of_an_old_recording_repeat_dumps_and_each_is_kept_once() -> None:
    first, second = recorded("load_tp0_barrier.json", "TP0"), recorded("weights_loader.json", "TP1")
    once = with_reading(START, StacksReading(3, "key D", (first,), done=False))
    twice = with_reading(once, StacksReading(3, "key D", (first, second)))
    assert [(dump.rank, dump.request) for dump in twice.stacks] == [("TP0", 3), ("TP1", 3)]
    assert twice.stacks[0] is once.stacks[0]
    assert twice.stacks_request == StacksReading(3, "key D", (), done=True)


def test_the_view_of_a_request_grows_with_it_and_the_older_ones_stay() -> None:
    snapshot = with_reading(START, StacksReading(1, "", (recorded("load_tp0_barrier.json", "TP0"),), done=False))
    assert [found.ranks for found in snapshot.stack_views[-1].classes] == [("TP0",)]
    snapshot = with_reading(snapshot, StacksReading(1, "", (recorded("weights_loader.json", "TP1"),)))
    assert [(found.ranks, found.outlier) for found in snapshot.stack_views[-1].classes] == [
        (("TP1",), True),
        (("TP0",), False),
    ]
    for number in range(2, 9):
        snapshot = with_reading(snapshot, StacksReading(number, "", (made("f@x.py:1", sample=number * 10),)))
    assert [view.request for view in snapshot.stack_views] == list(range(9 - KEPT_VIEWS, 9))
    assert snapshot.stack_views[-1].changes[0].words.startswith("the same frames and lines, 10s apart")


def test_a_large_request_is_kept_whole() -> None:
    dumps = tuple(made("f@x.py", f"TP{n}", sample) for sample in range(3) for n in range(64))
    snapshot = with_reading(START, StacksReading(1, "", dumps))
    assert len(snapshot.stacks) == len(dumps) > KEPT_DUMPS
    snapshot = with_reading(snapshot, StacksReading(2, "", dumps[:8]))
    assert len(snapshot.stacks) == KEPT_DUMPS
    assert [dump.request for dump in snapshot.stacks[-8:]] == [2] * 8


def test_dumps_that_are_not_kept_in_the_snapshot_are_kept_nowhere() -> None:
    """All that is asked of a dump is asked by a verdict, and remembered: not longer than the dump is there."""
    store = Store(0.0)
    store.step(Event(0.0, "server", ServerReading(Server(1, 1, family="sglang"))))
    store.step(Event(1.0, "procs", ProcsReading((Process(1077, 1, 1, Role.WORKER, "TP77"),))))
    for number in range(2 * KEPT_DUMPS):
        dump = made("f@x.py:1 < barrier@distributed_c10d.py", "TP77", number)
        store.step(Event(2.0 + number, "stacks", StacksReading(number, "auto: suspect", (dump,))))
        store.step(Event(2.5 + number, "tick"))
    gc.collect()
    held = sum(isinstance(one, StackDump) and one.rank == "TP77" for one in gc.get_objects())
    assert held <= KEPT_DUMPS + 2


def test_a_recorded_hang_has_its_dumps_once() -> None:
    epoch, events = recording("demo-stuck-rank")
    store = Store(epoch)
    for event in events:
        store.step(event)
    store.step(Event(store.snapshot.t, "tick"))
    dumps = store.snapshot.stacks
    assert len(dumps) == len({(dump.request, dump.pid, dump.sample) for dump in dumps}) > 0
    assert store.snapshot.stacks_request is not None
    assert store.snapshot.stacks_request.dumps == ()
    assert store.snapshot.stack_views[-1].classes[0].outlier


def test_an_idle_watch_matches_no_pattern_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ticks and readings of /proc over unchanged dumps: the results of the first look serve."""
    epoch, events = recording("demo-stuck-rank")
    store = Store(epoch)
    for event in events:
        store.step(event)
    searches: list[int] = []
    first = PatternIndex.first
    monkeypatch.setattr(PatternIndex, "first", lambda index, frames: searches.append(1) or first(index, frames))
    end = store.snapshot.t
    for number in range(1, 41):
        store.step(Event(end + number / 4, "tick"))
        store.step(Event(end + number / 4, "procs", replace(store.snapshot.procs)))
    assert store.snapshot.stacks
    assert searches == []
    again = tuple(replace(dump, sample=9) for dump in store.snapshot.stacks)
    store.step(Event(end + 11, "stacks", StacksReading(99, "", again)))
    assert searches, "new dumps are matched"


def test_the_general_tables_and_code_name_no_family() -> None:
    """Links to reports are sources; all else that is of one kind of server lies in its folder."""
    folder = files("sgmon.analyse.stacks")
    for entry in folder.iterdir():
        if entry.name.endswith((".py", ".toml")):
            text = re.sub(r"https?://\S+", "", entry.read_text(encoding="utf-8"))
            assert "sglang" not in text.lower(), entry.name
