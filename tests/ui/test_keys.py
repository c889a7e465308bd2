"""Every key of every binding, pressed where it works: something that belongs to it is another thing afterwards."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

import tui_app
import widgets
from sgmon.commands.bundling import BundleError
from sgmon.model import Snapshot
from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.screen import running, text_of
from tests.ui.test_arrangement import replay
from tui_app.app import SgmonApp
from tui_app.replay_app import ReplayApp

Observe = Callable[[SgmonApp, fakes.FakeEngine], object]


def page(app: SgmonApp, _: object) -> object:
    return type(app.screen)


def focus(app: SgmonApp, _: object) -> object:
    return app.screen.active  # type: ignore[attr-defined]


def words(app: SgmonApp, _: object) -> object:
    return text_of(app)


def stacks(_: object, engine: fakes.FakeEngine) -> object:
    return len(engine.requests)


def copied(app: SgmonApp, _: object) -> object:
    return app.clipboard


def log(app: SgmonApp, _: object) -> object:
    panel = app.screen.panels["4"]  # type: ignore[attr-defined]
    return panel.state_of_rows(), app.clipboard


def scrolled(app: SgmonApp, _: object) -> object:
    lines = app.screen.lines  # type: ignore[attr-defined]
    return lines.top


def called(app: SgmonApp, _: object) -> object:
    return list(app.calls)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Case:
    """before: keys pressed first, from the overview on; observe: what the key changes."""

    observe: Observe
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where the bindings of a class work: the keys that lead there, and what each binding changes."""

    open: tuple[str, ...]
    cases: dict[str, Case]
    snapshot: Callable[[], Snapshot] = fakes.stuck
    size: tuple[int, int] = (120, 40)


_MID = ("pageup", "pageup", "down")  # in the middle of the log
PLACES: dict[str, Place] = {
    "SgmonApp": Place(
        (),
        {
            "app.help": Case(page),
            "app.palette": Case(page),
            "app.report": Case(page),
            "app.flight": Case(lambda app, _: len(app._notifications)),
            "app.mouse": Case(called),
            "app.repaint": Case(called),
            "app.suspend": Case(called),
            "app.quit": Case(lambda app, _: app._exit),
        },
    ),
    "Overview": Place(
        (),
        {
            **{f"overview.panel{n}": Case(focus, ("tab",) if n == "1" else ()) for n in "12345"},
            "overview.next": Case(focus),
            "overview.previous": Case(focus),
            "overview.zoom": Case(words),
            "overview.freeze": Case(lambda app, _: app.screen.frozen),
            "overview.why": Case(page),
            "overview.dump": Case(stacks),
            "overview.dump_all": Case(stacks),
            "overview.detail": Case(page),
            "overview.only_odd": Case(words, ("3",)),
            "overview.servers": Case(page),
            "overview.copy": Case(copied),
            "overview.copy_view": Case(copied),
            "overview.quit": Case(words),
            "overview.back": Case(words, ("z",)),
            **{
                f"overview.log.{name}": Case(focus)
                for name in (
                    *("pageup", "pagedown", "search", "next", "previous", "only", "inverse", "rank", "rank_back"),
                    *("node", "node_back", "error", "error_back", "warning", "warning_back", "milestone"),
                    *("milestone_back", "wrap", "clock", "noise", "every"),
                )
            },
        },
    ),
    "Overview, crashed": Place((), {"overview.log_line": Case(focus)}, lambda: replay("gpu-oom-frac")[1]),
    "Panel": Place(
        ("3",),
        {
            "panel.up": Case(words, ("down", "down")),
            "panel.down": Case(words, ("g",)),
            "panel.first": Case(words, ("down",)),
            "panel.last": Case(words, ("g",)),
        },
    ),
    "GpuPanel": Place(("2",), {"gpus.choose": Case(page)}),
    "LogPanel": Place(
        ("4",),
        {
            "log.pageup": Case(log),
            "log.pagedown": Case(log, ("g",)),
            "log.first": Case(log, ("G",)),
            "log.follow": Case(log, ("g",)),
            "log.left": Case(log, ("right",)),
            "log.right": Case(log),
            "log.search": Case(log),
            "log.next": Case(log, ("slash", "T", "P", "enter")),
            "log.previous": Case(log, ("slash", "T", "P", "enter")),
            "log.only": Case(log, ("slash", "T", "P", "enter")),
            "log.inverse": Case(log, ("slash", "T", "P", "enter")),
            "log.rank": Case(log),
            "log.rank_back": Case(log),
            "log.node": Case(log),
            "log.node_back": Case(log),
            "log.error": Case(log, _MID),
            "log.error_back": Case(log, _MID),
            "log.warning": Case(log, _MID),
            "log.warning_back": Case(log, _MID),
            "log.milestone": Case(log, _MID),
            "log.milestone_back": Case(log, _MID),
            "log.wrap": Case(log),
            "log.clock": Case(log),
            "log.noise": Case(log),
            "log.every": Case(log),
            "log.expand": Case(log),
            "log.copy": Case(log),
            "log.clear": Case(log, ("r",)),
        },
        size=(120, 30),
    ),
    "LinesScreen": Place(
        ("question_mark",),
        {
            "page.back": Case(page),
            "page.copy": Case(copied),
            "page.save": Case(lambda *_: len(list(Path().iterdir()))),
        },
    ),
    "LinesView": Place(
        ("question_mark",),
        {
            "page.up": Case(scrolled, ("G",)),
            "page.down": Case(scrolled, ("g",)),
            "page.pageup": Case(scrolled, ("G",)),
            "page.pagedown": Case(scrolled, ("g",)),
            "page.top": Case(scrolled, ("G",)),
            "page.bottom": Case(scrolled, ("g",)),
        },
    ),
    "DetailScreen": Place(("3", "enter"), {"detail.dump": Case(stacks)}),
    "GpuScreen": Place(("2", "enter"), {"gpu.before": Case(words), "gpu.next": Case(words)}),
    "WhyScreen": Place(("v",), {"why.dump": Case(stacks), "why.dump_all": Case(stacks)}),
    "WhyScreen, crashed": Place(("v",), {"why.log_line": Case(page)}, lambda: replay("gpu-oom-frac")[1]),
    "StackScreen": Place(
        ("D",),
        {
            "stacks.repeat": Case(stacks),
            "stacks.native": Case(words),
            "stacks.threads": Case(lambda app, _: app.screen.options),  # type: ignore[attr-defined]
        },
    ),
    "Picker": Place(
        ("s",),
        {
            "picker.back": Case(page),
            "picker.down": Case(lambda app, _: app.screen.options.highlighted, ("up",)),  # type: ignore[attr-defined]
            "picker.up": Case(lambda app, _: app.screen.options.highlighted, ("down",)),  # type: ignore[attr-defined]
        },
        fakes.two_servers,
    ),
    "ReportScreen": Place(("ctrl+s",), {"report.write": Case(called)}),
}
REPLAY = ("play", "step", "faster", "slower", "back", "on", "before", "next")


def bindings() -> Iterator[tuple[str, Binding]]:
    """(name of the class, binding) of everything that is bound in the project."""
    for package in (widgets, tui_app):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for one in vars(module).values():
                if isinstance(one, type) and issubclass(one, DOMNode) and one.__module__ == found.name:
                    for binding in one.__dict__.get("BINDINGS", ()):
                        yield one.__name__, binding


def test_every_binding_has_a_case_and_an_id_and_every_case_a_binding() -> None:
    ids = {f"{owner} {binding.id}" for owner, binding in bindings()}
    assert not [one for one in ids if one.endswith("None")]
    cases = {f"{name.partition(',')[0]} {one}" for name, place in PLACES.items() for one in place.cases}
    assert ids == cases | {f"ReplayApp replay.{name}" for name in REPLAY}


@pytest.mark.parametrize("name", PLACES)
async def test_each_key_does_what_it_is_bound_to(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    place = PLACES[name]
    keys = {binding.id: binding.key for owner, binding in bindings() if owner == name.partition(",")[0]}
    async with running(place.snapshot(), place.size, log=tmp_path / "log") as (app, engine, pilot):
        _stand_ins(app, monkeypatch)
        for one, case in place.cases.items():
            for key in (keys[one] or "").split(","):
                await _back_to_overview(app, pilot)
                for before in (*place.open, *case.before):
                    await pilot.press(before)
                    await pilot.pause()
                if name == "ReportScreen":
                    app.screen._bundle = object()  # type: ignore[attr-defined]
                was = case.observe(app, engine)
                await pilot.press(key)
                for _ in range(200):  # an answer may come from another thread
                    if case.observe(app, engine) != was:
                        break
                    await pilot.pause(0.02)
                assert case.observe(app, engine) != was, f"{key} ({one}) changed nothing"


async def _back_to_overview(app: SgmonApp, pilot: Any) -> None:
    while len(app.screen_stack) > 1:
        app.pop_screen()
        await pilot.pause()
    overview = app.screen
    for panel in overview.panels.values():  # type: ignore[attr-defined]
        if hasattr(panel, "prompt"):
            panel.prompt.open = False
            panel.search.clear()
            panel.notice = ""
    overview.zoomed = False  # type: ignore[attr-defined]
    overview.frozen = None  # type: ignore[attr-defined]
    overview._quit_is_asked = False  # type: ignore[attr-defined]
    overview.verdict.set_note("")  # type: ignore[attr-defined]
    overview._activate("1")  # type: ignore[attr-defined]
    await pilot.pause()
    app._clipboard = ""


def _stand_ins(app: SgmonApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what needs a real terminal or leaves the screen."""
    app.calls = calls = []  # type: ignore[attr-defined]
    cells = SimpleNamespace(
        toggle_mouse=lambda: calls.append("mouse") or True,
        forget=lambda: calls.append("forget"),
        link=SimpleNamespace(words=""),
        show=lambda *_: None,
    )
    monkeypatch.setattr(SgmonApp, "_cells", cells)
    monkeypatch.setattr(app, "action_suspend_process", lambda: calls.append("suspend"))

    def refuse(*_: object, **__: object) -> None:
        raise BundleError("no bundle of a fake engine")

    monkeypatch.setattr("sgmon.commands.bundling.make", refuse)
    monkeypatch.setattr("tui_app.copying.show_plain", lambda *_: None)
    monkeypatch.setattr("sgmon.commands.bundling.write", lambda *_: calls.append("write") or Path("report"))


class Recorder:
    """A replay that writes down what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args: self.calls.append((name, *args))


async def test_the_keys_of_a_replay_move_in_time() -> None:
    engine = fakes.FakeEngine(fakes.stuck())
    recorder = Recorder()
    engine.replay, engine.to_previous_change = recorder, recorder.to_previous_change  # type: ignore[attr-defined]
    async with ReplayApp(engine, Settings()).run_test(size=(120, 40)) as pilot:  # type: ignore[arg-type]
        for binding in ReplayApp.BINDINGS:
            for key in binding.key.split(","):  # type: ignore[union-attr]
                await pilot.press(key)
    assert recorder.calls == [
        ("pause",),
        ("step",),
        ("faster", True),
        ("faster", True),
        ("faster", False),
        ("seek_by", -10.0),
        ("seek_by", 10.0),
        ("to_previous_change",),
        ("to_next_change",),
    ]
