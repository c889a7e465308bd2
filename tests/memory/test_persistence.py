"""What a live watch remembers: flights on alarms, finished starts, the baseline; never in the engine's way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon.analyse.store import Store
from sgmon.history.baseline import baseline
from sgmon.history.database import DatabaseError, StartDatabase
from sgmon.history.from_snapshot import start_of
from sgmon.model import Baseline, Event, ProbeReading, Snapshot
from sgmon.recording import codec
from sgmon.recording.ring_buffer import KEPT_FILES
from sgmon.watch import persistence as persistence_module
from sgmon.watch.persistence import CORRECTED_S, SETTLE_S, Persistence
from tests.memory import watches
from tests.memory.watches import snapshot

LIMIT_S = 100.0


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "sgmon"


def _persistence(history: StartDatabase | None = None) -> Persistence:
    persistence = Persistence(watches.EPOCH, history)
    for event in watches.events():
        persistence.ring.write(event)
    return persistence


def _look(persistence: Persistence, now: Snapshot) -> list[Event]:
    """Look, wait until every thread has ended, and look again: what has come of it."""
    come = persistence.look(now)
    for thread in list(persistence._threads):
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    return come + persistence.look(now)


def _ready() -> Snapshot:
    store = Store(watches.EPOCH)
    for event in watches.events():
        store.step(event)
    return snapshot("ready", t=70.0, log=store.snapshot.log)


@pytest.mark.parametrize("state", ["stalled", "stopped", "crashed"])
def test_an_alarm_saves_the_flight_once_an_episode(state: str, state_home: Path) -> None:
    persistence = _persistence()
    persistence.look(snapshot())
    for t in (20.0, 21.0, 22.0):
        _look(persistence, snapshot(state, t))
    files = list((state_home / "flights").iterdir())
    assert len(files) == 1
    assert files[0].name.endswith(f"-pid4711-{state}.jsonl.gz")
    assert persistence.saved == (str(files[0]),)
    header, events = codec.read(files[0])
    assert header.note == f"headline of {state}"
    assert [event.kind for event in events] == [event.kind for event in watches.events()]


def test_the_file_is_written_again_with_what_came_after() -> None:
    persistence = _persistence()
    _look(persistence, snapshot("stalled", 20.0))
    persistence.ring.write(Event(25.0, "tick"))
    late = snapshot("stalled", 20.0 + SETTLE_S)
    _look(persistence, late)
    assert len(persistence.saved) == 1
    assert [event.t for event in codec.read(Path(persistence.saved[0]))[1]][-1] == 25.0


def test_a_new_episode_has_a_new_file_and_there_is_an_end_to_it() -> None:
    persistence = _persistence()
    for number in range(20):
        for state in ("stalled", "progressing"):
            now = snapshot(state, 30.0 * number)
            _look(persistence, now)
    assert 2 <= len(persistence.saved) <= 6


def test_a_simulated_server_leaves_nothing_behind(state_home: Path) -> None:
    from msgspec.structs import replace

    persistence = _persistence(StartDatabase())
    server = replace(watches.SERVER, simulated_gpus="/tmp/g")
    persistence.look(snapshot("crashed", 20.0, server=server))
    persistence.look(snapshot("crashed", 40.0, server=server))
    persistence.close()
    assert not state_home.exists() or not list(state_home.rglob("*.*"))


def test_asked_for_it_is_saved_at_once() -> None:
    persistence = _persistence()
    persistence.look(snapshot())
    persistence.save_flight()
    _look(persistence, snapshot())
    assert persistence.saved[0].endswith("-asked.jsonl.gz")


def test_files_that_had_to_go_are_not_named_as_saved() -> None:
    persistence = _persistence()
    for t in range(KEPT_FILES + 3):
        persistence.look(snapshot(t=float(t)))
        persistence.save_flight()
        _look(persistence, snapshot(t=float(t)))
    assert len(persistence.saved) == KEPT_FILES
    assert all(Path(path).exists() for path in persistence.saved)


def test_a_folder_that_cannot_be_written_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    persistence = _persistence(StartDatabase())
    said = [event.reading for event in _look(persistence, snapshot("crashed", 20.0))]
    errors = {reading.name: reading for reading in said if isinstance(reading, ProbeReading)}
    assert "Not a directory" in errors["flight"].error
    assert errors["flight"].remedy
    assert persistence.saved == ()


def test_a_full_disk_is_a_finding_until_there_is_room(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk))
    (small_disk / "ballast").write_bytes(b"\0" * 262_144)
    persistence = _persistence()
    store = Store(watches.EPOCH)
    now = snapshot("stalled", 20.0)
    for event in _look(persistence, now):
        store.step(event)
    wrong = {status.name: status.error for status in store.snapshot.probes}
    assert "No space left" in wrong["flight"]
    assert persistence.saved == ()
    (small_disk / "ballast").unlink()
    later = snapshot("stalled", 20.0 + SETTLE_S, probes=store.snapshot.probes)
    for event in _look(persistence, later):
        store.step(event)
    assert {status.name: status.error for status in store.snapshot.probes}["flight"] == ""
    assert len(persistence.saved) == 1


def test_a_ready_start_is_stored_once_and_is_the_next_ones_baseline() -> None:
    history = StartDatabase()
    persistence = _persistence(history)
    ready = _ready()
    for t in (70.0, 71.0, 72.5, 73.0, 90.0):
        now = snapshot("ready", t, log=ready.log)
        _look(persistence, now)
    persistence.close()
    runs = history.runs()
    assert len(runs) == 1
    run = runs[0]
    assert (run.outcome, run.duration_s, run.key.caches, run.env) == (
        "ready",
        61.0,
        "warm",
        (("NCCL_DEBUG", "INFO"),),
    )
    assert {one.name: (one.at_s, one.line) for one in run.milestones}["load_begin"] == (23.0, 3)

    again = _persistence(history)
    first = snapshot("progressing", 1.0)
    found = [e.reading for e in _look(again, first)]
    assert [type(reading) for reading in found] == [Baseline]
    base = found[0]
    assert isinstance(base, Baseline)
    assert (base.count, base.ready_median_s) == (1, 61.0)
    assert "mount and caches" in base.like


def test_a_first_start_has_no_number() -> None:
    persistence = _persistence(StartDatabase())
    first = snapshot("progressing", 1.0)
    events = _look(persistence, first)
    assert [event.reading for event in events] == [Baseline()]
    store = Store(watches.EPOCH)
    assert store.step(events[0]).baseline is None


def test_a_stalled_start_is_stored_when_the_watch_ends() -> None:
    history = StartDatabase()
    persistence = _persistence(history)
    persistence.look(snapshot("stalled", 50.0))
    persistence.close()
    assert [run.outcome for run in history.runs()] == ["stalled"]


def test_ready_is_not_taken_back() -> None:
    history = StartDatabase()
    number = history.add(start_of(_ready(), "ready"))
    assert history.add(start_of(snapshot("crashed", 900.0), "crashed")) == number
    assert [run.outcome for run in history.runs()] == ["ready"]


def test_a_hung_home_does_not_hold_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()

    class Hung(StartDatabase):
        def baseline(self, key: object) -> None:
            never.wait(60)

    persistence = _persistence(Hung())
    monkeypatch.setattr("sgmon.watch.persistence.CLOSE_S", 0.05)
    assert persistence.look(snapshot("progressing", 1.0)) == []
    assert persistence.look(snapshot("progressing", 2.0)) == []
    persistence.close()
    never.set()


def test_a_damaged_history_is_a_finding(state_home: Path) -> None:
    state_home.mkdir(parents=True)
    (state_home / "history.sqlite").write_bytes(b"no database at all, but long enough" * 40)
    with pytest.raises(DatabaseError, match=r"history\.sqlite cannot be used"):
        StartDatabase().runs()
    persistence = _persistence(StartDatabase())
    said = [event.reading for event in _look(persistence, snapshot("progressing", 1.0))]
    assert [reading.name for reading in said if isinstance(reading, ProbeReading)] == ["history"]


def test_a_baseline_says_how_alike_its_starts_are() -> None:
    from msgspec.structs import replace

    run = start_of(_ready(), "ready")
    other = replace(run, key=replace(run.key, version="0.5.9"))
    base = baseline([other], run.key)
    assert base is not None and "another version" in base.like
    assert {one.phase: one.median_s for one in base.phases}["weights"] == 31.0


def test_a_crash_that_is_told_otherwise_later_is_saved_with_what_told_so() -> None:
    """Long after the second saving: the file replays to the culprit that the watch ended with."""
    from msgspec.structs import replace

    persistence = _persistence()
    _look(persistence, snapshot("crashed", 20.0))
    _look(persistence, snapshot("crashed", 20.0 + SETTLE_S))
    first = snapshot("crashed", 40.0)
    persistence.ring.write(Event(40.0, "tick"))
    for t in (40.0, 40.0 + CORRECTED_S):
        _look(persistence, replace(first, t=t, verdict=replace(first.verdict, headline="TP2 was killed")))
    (saved,) = persistence.saved
    header, events = codec.read(Path(saved))
    assert header.note == "TP2 was killed"
    assert [event.t for event in events][-1] == 40.0


def test_what_was_stored_is_remembered_of_the_newest_starts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch of a server that is started again and again for months does not grow."""
    monkeypatch.setattr(persistence_module, "STORED", 3)
    persistence = Persistence(watches.EPOCH, StartDatabase())
    stored: list[int] = []

    def crash(pid: int) -> None:
        base = snapshot("crashed", t=20.0)
        assert base.server is not None
        _look(persistence, replace(base, server=replace(base.server, pid=pid)))

    monkeypatch.setattr(persistence, "_later", lambda name, work: stored.append(1) if name == "history" else None)
    for pid in (1, 2, 3, 4, 5, 4, 5):
        crash(pid)
    crash(5)
    assert len(stored) == 5, "each once"
    assert len(persistence._stored) == 3
