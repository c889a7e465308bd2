"""A start that was said to fail and got ready is kept as a defect of sgmon; how long a start takes against others."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from msgspec.structs import replace

from sgmon.commands import runs
from sgmon.export.json import status_report
from sgmon.history import database, from_snapshot
from sgmon.history.database import StartDatabase
from sgmon.model import Baseline, Event, Listener, UsualPhase
from sgmon.model.preflight import ModelFolder, Place, Preflight
from tests.diagnosis.world import World

LOST = Preflight(model=ModelFolder("/models/m", place=Place.ABSENT))


def test_a_wrong_prophecy_is_kept_and_shown(tmp_path: Path) -> None:
    world = World(1)
    world.step(Event(0.1, "preflight", LOST))
    world.run(1)
    assert world.verdict.rule == "will-fail-model-path"
    world.to("weights").run(5)
    assert world.verdict.state == "progressing", "it has come further than the phase in which it had to fail"
    world.answers(200)
    world.to("ready").run(6)
    assert world.verdict.state == "ready"
    start = from_snapshot.start_of(world.store.snapshot, "ready")
    assert start.foretold == ("model-path",)
    history = StartDatabase(tmp_path / "history.sqlite")
    kept = history.get(history.add(start))
    assert kept is not None and kept.foretold == ("model-path",)
    assert any("a defect of sgmon" in line for line in runs.full(kept))
    assert "said to fail" in "".join(runs.table([kept]))
    assert from_snapshot.start_of(world.store.snapshot, "crashed").foretold == (), "that one was right"


def test_a_history_from_before_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with sqlite3.connect(path) as old:
        old.executescript(database._TABLE.replace(", foretold text not null default '[]'", ""))
        old.execute("pragma user_version = 1")
    old.close()
    world = World(1).run(2)
    history = StartDatabase(path)
    kept = history.get(history.add(from_snapshot.start_of(world.store.snapshot, "ready")))
    assert kept is not None and kept.foretold == ()


def test_a_fault_that_is_mended_is_no_wrong_prophecy() -> None:
    world = World(1)
    world.answers(None, answer="skipped", ours=False, name="python3 -m http.server")
    world.to("weights").run(3)
    assert world.verdict.rule == "will-fail-port"
    assert world.verdict.evidence[0].text.startswith("sure, because no second socket")
    world.answers(None, answer="refused")
    world.port = replace(world.port, listeners=())  # type: ignore[type-var]
    world.run(6)
    assert world.verdict.state == "progressing"
    world.answers(200)
    world.to("ready").run(6)
    assert from_snapshot.start_of(world.store.snapshot, "ready").foretold == ()


def test_a_stall_is_not_hidden_by_what_will_fail() -> None:
    world = World(2)
    world.answers(None, answer="skipped", ours=False, name="python3")
    world.to("weights").run(70)
    assert world.verdict.state == "stalled"
    assert any("this start will fail" in fact.text for fact in world.verdict.evidence)


def test_warnings_stand_beside_a_green_state() -> None:
    world = World(1)
    hung = ModelFolder("/nfs/m", place=Place.HUNG, fstype="nfs4")
    world.step(Event(0.1, "preflight", Preflight(model=hung)))
    world[0].compute()
    world.to("weights").run(3)
    assert world.verdict.state == "progressing"
    assert world.verdict.evidence[-1].text.startswith("1 warning: /nfs/m (nfs4) has not answered")


def test_the_time_until_it_fails_and_until_it_is_ready() -> None:
    world = World(1)
    usual = Baseline(
        "same", 3, True, 60.0, 70.0, phases=(UsualPhase("weights", 40.0, 50.0), UsualPhase("http", 5.0, 6.0))
    )
    world.step(Event(0.1, "baseline", usual))
    world[0].compute()
    world.to("weights").run(5)
    assert world.store.snapshot.eta.usual_s == 60.0
    assert world.store.snapshot.eta.remains_s == 54.0
    world.port = replace(
        world.port,
        answer="skipped",
        listeners=(Listener("127.0.0.1:30000", 77, False, "python3"),),  # type: ignore[type-var]
    )
    world.run(3)
    assert world.verdict.headline.endswith("this start will fail while the HTTP server starts, in about 40s")


def test_the_json_has_what_is_not_ok() -> None:
    world = World(1)
    world.step(Event(0.1, "preflight", LOST))
    world.run(1)
    report = status_report(world.store.snapshot)
    assert report.state == "will-fail"
    assert [(one.rule, one.level, one.phase) for one in report.forecasts] == [("model-path", "will-fail", "launch")]
