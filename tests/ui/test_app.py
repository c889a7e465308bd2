"""The whole screen on a fake engine: sizes, keys, freeze, hostile text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from textual._compositor import ChopsUpdate
from textual.command import CommandList
from textual.screen import Screen

from sgmon.model import LogReading, LogState, NextStep, Snapshot, Verdict, VerdictChange
from sgmon.settings import Settings
from tests.ui import fakes
from tests.ui.screen import SIZES, give, resize, rows_of, running, text_of
from tui_app.app import SgmonApp
from tui_app.help_screen import HelpScreen
from tui_app.messages import SnapshotArrived
from tui_app.overview import Overview
from tui_app.picker import Picker
from tui_app.stack_screen import StackScreen
from tui_app.why_screen import WhyScreen
from widgets.states import state_style

SNAPSHOTS = {
    name: getattr(fakes, name)
    for name in (
        *("waiting", "importing", "loading", "stuck", "compiling", "crashed", "ready"),
        *("no_nvml", "hung_probe", "two_servers", "hostile", "with_stacks"),
    )
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_row_fits_and_the_verdict_is_on_top(size: tuple[int, int]) -> None:
    async with running(Snapshot(), size) as (app, engine, pilot):
        for name, make in SNAPSHOTS.items():
            snapshot = make()
            await give(engine, pilot, snapshot)
            await pilot.pause()
            rows = rows_of(app)
            assert len(rows) == size[1], name
            assert {cell_len(row) for row in rows} == {size[0]}, name
            assert state_style(snapshot.verdict.state).word in rows[0], name
            assert any(word in rows[0] for word in ("for ", "silent ", " ago ")), name
            assert "?" in rows[-1], name
            assert "quit" in rows[-1], name


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_stuck_rank_is_named_at_every_size(size: tuple[int, int]) -> None:
    async with running(fakes.stuck(), size) as (app, _, _):
        text = text_of(app)
        assert "STALLED" in text
        assert "TP3" in rows_of(app)[0]
        assert "!TP3" in text
        assert " next " in text


async def test_low_terminal_shows_one_panel_with_tabs() -> None:
    async with running(fakes.stuck(), (60, 15)) as (app, _, pilot):
        assert "3 workers!" in text_of(app)
        assert "rank        pid" not in text_of(app)
        await pilot.press("3")
        await pilot.pause()
        assert "▸3 workers!" in text_of(app)
        assert "4803" in text_of(app)


async def test_a_moved_focus_paints_the_rows_that_change_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        shown: list[object] = []
        monkeypatch.setattr(SgmonApp, "_display", lambda self, screen, update: shown.append(update))
        await pilot.press("3")
        await pilot.pause()
        updates = [update for update in shown if update is not None]
        assert updates and all(isinstance(update, ChopsUpdate) for update in updates)
        rows = {y for update in updates for y, _, _ in update.spans}
        titles = {panel.region.y for panel in app.screen.panels.values()}
        assert app.screen.panels["3"].region.y in rows
        assert len(rows - titles) <= 8  # rows of the selected worker, and the keys at the bottom


async def test_the_dump_key_asks_for_the_odd_rank_before_any_other_key() -> None:
    async with running(fakes.stuck(), (80, 24)) as (app, engine, pilot):
        await pilot.press("d")
        assert engine.requests == [((4803,), 1, False, "key d")]
        assert isinstance(app.screen, StackScreen)
        assert "asking since" in text_of(app)
        await give(engine, pilot, fakes.with_stacks(why="key d"))
        text = text_of(app)
        assert "get_tensor" in text
        assert "py-spy dump --nonblocking" in text
        assert "dist_barrier_after_load" not in text
        await pilot.press("q")
        assert isinstance(app.screen, Overview)


async def test_dump_all_merges_and_shows_the_odd_rank_first() -> None:
    async with running(fakes.stuck(), (100, 40)) as (app, engine, pilot):
        await pilot.press("D")
        assert engine.requests == [(None, 3, False, "key D")]
        await give(engine, pilot, fakes.with_stacks())
        text = text_of(app)
        assert text.index("TP3") < text.index("TP0-2,4-7")
        assert "OUTLIER" in text
        assert "outer frames, the same for all" in text


async def test_an_old_dump_is_not_shown_as_the_answer() -> None:
    async with running(fakes.with_stacks(request=4), (100, 40)) as (app, engine, pilot):
        engine.first_request = 5
        await pilot.press("D")
        await give(engine, pilot, fakes.with_stacks(request=4, t=996.0))
        assert "waiting for py-spy" in text_of(app)
        await give(engine, pilot, fakes.with_stacks(request=5, t=997.0))
        assert "OUTLIER" in text_of(app)


async def test_an_automatic_request_queued_before_the_key_is_not_shown_as_the_answer() -> None:
    async with running(fakes.with_stacks(request=4), (100, 40)) as (app, engine, pilot):
        engine.first_request = 6
        await pilot.press("D")
        await give(engine, pilot, fakes.with_stacks(request=5, why="auto: suspect", t=996.0))
        assert "waiting for py-spy" in text_of(app)
        assert "asking since" in text_of(app)
        await give(engine, pilot, fakes.with_stacks(request=6, t=997.0))
        assert "OUTLIER" in text_of(app)
        assert "asking since" not in text_of(app)


async def test_a_recording_shows_the_stacks_that_it_holds() -> None:
    async with running(replace(fakes.with_stacks(request=4), replay="start.jsonl.gz"), (100, 40)) as (app, _, pilot):
        await pilot.press("D")
        assert "OUTLIER" in text_of(app)
        assert "as recorded, taken 1s ago" in text_of(app)


async def test_the_rows_of_stacks_are_painted_once_for_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(fakes.stuck(), (100, 40)) as (app, engine, pilot):
        await pilot.press("D")
        answered = fakes.with_stacks()
        await give(engine, pilot, answered)
        painted: list[int] = []
        monkeypatch.setattr(app.screen.lines, "show_page", lambda rows: painted.append(len(rows)))
        await give(engine, pilot, replace(answered, t=answered.t + 5))
        assert painted == []
        assert "taken 6" in text_of(app)
        await pilot.press("t")
        assert len(painted) == 1


async def test_a_refused_dump_says_why_and_what_helps() -> None:
    async with running(fakes.stuck(), (100, 40)) as (app, engine, pilot):
        await pilot.press("D")
        await give(engine, pilot, fakes.with_stacks(refused=True))
        text = text_of(app)
        assert "not permitted to read the memory" in text
        assert "ptrace_scope" in text
        assert "the same for 8 processes" in text


async def test_native_asks_twice_and_says_what_it_costs() -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, engine, pilot):
        await pilot.press("d", "n")
        assert "stop each process" in text_of(app)
        assert len(engine.requests) == 1
        await pilot.press("n")
        assert engine.requests[-1] == ((4803,), 1, True, "key d")


async def test_freeze_keeps_the_view_and_says_how_far_behind() -> None:
    async with running(fakes.loading(t=300.0), (120, 40)) as (app, engine, pilot):
        await pilot.press("space")
        await give(engine, pilot, fakes.stuck(t=312.0))
        assert "FROZEN, 10s behind" in rows_of(app)[0]
        assert "PROGRESSING" in rows_of(app)[0]
        await pilot.press("space")
        assert "STALLED" in rows_of(app)[0]
        assert "FROZEN" not in text_of(app)


async def test_zoom_and_back_and_quit() -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        await pilot.press("3", "3")
        await pilot.pause()
        assert "1 startup" not in text_of(app)
        assert "▸3 workers" in text_of(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "1 startup" in text_of(app)
        await pilot.press("escape")
        assert app.is_running
        await pilot.press("q", "q")
        await pilot.pause()
        assert app.return_code == 0


async def test_one_q_too_many_does_not_end_the_watch() -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        await pilot.press("v", "q", "q")  # leave a page, and once more by mistake
        await pilot.pause()
        assert app.is_running and "again quits" in rows_of(app)[-1]
        await pilot.press("down", "q")  # another key takes it back
        await pilot.pause()
        assert app.is_running


@pytest.mark.parametrize(
    ("key", "done"), [("slash", "prompt"), ("e", "notice"), ("l", "row_format"), ("t", "row_format")]
)
async def test_log_keys_work_from_every_panel(key: str, done: str, tmp_path: Path) -> None:
    async with running(fakes.stuck(), (120, 40), log=tmp_path / "log") as (app, _, pilot):
        await pilot.press("3")
        log = app.screen.panels["4"]  # type: ignore[attr-defined]
        before = getattr(log, done) if done != "prompt" else None
        await pilot.press(key)
        await pilot.pause()
        assert log.has_focus
        assert log.prompt.open if done == "prompt" else getattr(log, done) != before


async def test_repaint_sends_the_whole_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        sent = []
        display = type(app)._display
        monkeypatch.setattr(type(app), "_display", lambda *args: sent.append(args[2]) or display(*args))
        await pilot.press("ctrl+l")
        await pilot.pause()
        assert "LayoutUpdate" in {type(item).__name__ for item in sent}


async def test_the_why_page_says_what_was_not_seen_and_nothing_twice() -> None:
    snapshot = fakes.stuck()
    change = VerdictChange(900.0, "stalled", "same words")
    twice = replace(snapshot, verdicts=(change, replace(change, t=910.0)))
    async with running(twice, (120, 100)) as (app, _, pilot):
        await pilot.press("v")
        await pilot.pause()
        assert "not seen" in text_of(app)
        assert text_of(app).count("same words") == 1


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_help_names_each_key_whole(width: int) -> None:
    async with running(fakes.stuck(), (width, 150)) as (app, _, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        assert "q esc backspace" in text_of(app)


async def test_tab_goes_through_the_panels_in_the_order_of_their_numbers() -> None:
    async with running(fakes.loading(), (120, 40)) as (app, _, pilot):
        seen = []
        for _ in range(5):
            await pilot.press("tab")
            seen.append(app.screen.active)  # type: ignore[attr-defined]
        assert seen == ["2", "3", "4", "5", "1"]


async def test_the_cursor_follows_the_keys_and_enter_opens_that_worker() -> None:
    async with running(fakes.stuck(), (120, 60)) as (app, _, pilot):
        await pilot.press("3", "up")
        await pilot.press("enter")
        await pilot.pause()
        assert "pid 4802" in text_of(app)
        assert "the same file as the launcher" in text_of(app)


async def test_only_what_differs() -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        await pilot.press("3", "x")
        await pilot.pause()
        text = text_of(app)
        assert "4803" in text
        assert "4805" not in text
        assert "only what differs" in text


async def test_help_is_made_from_the_bindings() -> None:
    async with running(fakes.stuck(), (120, 100)) as (app, _, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        text = text_of(app)
        for binding in Overview.BINDINGS:
            assert binding.description in text  # type: ignore[union-attr]


async def test_every_binding_has_an_id_and_none_is_twice() -> None:
    from tui_app.app import SgmonApp
    from tui_app.lines_screen import LinesScreen
    from widgets.panel import Panel

    ids = [
        binding.id  # type: ignore[union-attr]
        for owner in (SgmonApp, Overview, LinesScreen, StackScreen, Panel)
        for binding in owner.BINDINGS
    ]
    assert None not in ids
    assert len(set(ids)) == len(ids)


async def test_picker_chooses_another_server() -> None:
    async with running(fakes.two_servers(), (120, 40)) as (app, engine, pilot):
        assert "2 servers" in rows_of(app)[-1]
        await pilot.press("s")
        await pilot.pause()
        assert "llama-8b" in text_of(app)
        await pilot.press("down", "enter")
        assert engine.chosen == [9911]


async def test_waiting_turns_into_the_panels_by_itself() -> None:
    async with running(fakes.waiting(), (80, 24)) as (app, engine, pilot):
        assert "looking for" in text_of(app)
        assert "1 startup" not in text_of(app)
        await give(engine, pilot, fakes.importing())
        await pilot.pause()
        text = text_of(app)
        assert "looking for" not in text
        assert "importing (normal, no log lines)" in text


async def test_why_shows_everything() -> None:
    async with running(fakes.stuck(), (100, 60)) as (app, _, pilot):
        await pilot.press("v")
        await pilot.pause()
        text = text_of(app)
        for item in fakes.stuck().verdict.next:
            assert item.command in text
        assert "run sgmon as root" in text


@pytest.mark.parametrize("keys", ["", "d", "D", "v", "3,enter", "question_mark"])
async def test_hostile_text_is_only_text(keys: str) -> None:
    snapshot = fakes.hostile()
    async with running(snapshot, (120, 40)) as (app, engine, pilot):
        await pilot.press(*[key for key in keys.split(",") if key])
        stacks = fakes.with_stacks(request=1)
        bad = tuple(
            replace(d, error=fakes.HOSTILE, command=fakes.HOSTILE) if d.rank == "TP1" else d for d in stacks.stacks
        )
        await give(
            engine,
            pilot,
            replace(snapshot, stacks=bad, stacks_request=stacks.stacks_request, stack_views=stacks.stack_views),
        )  # type: ignore[type-var]
        text = text_of(app)
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
        assert {cell_len(row) for row in rows_of(app)} == {120}
        if not keys:
            assert "[/] [bold red]x[/bold red]" in text


@pytest.mark.parametrize("size", [(60, 15), (120, 40)])
async def test_ascii_only_sends_nothing_else(size: tuple[int, int]) -> None:
    async with running(fakes.stuck(), size, Settings(ascii=True)) as (app, engine, pilot):
        for keys in ("3", "v", "q", "question_mark", "q"):
            await pilot.press(keys)
            await pilot.pause()
            own = [row for row in rows_of(app) if not row.isascii()]
            assert own == []
        await give(engine, pilot, fakes.stuck(995.0))
        assert text_of(app).isascii()
        app.notify("words", markup=False)
        app.notify("a warning", severity="warning", markup=False)
        for keys in ("M", "colon", "s"):  # a notice, the list of commands, one that is found in it
            await pilot.press(keys)
            await pilot.pause(0.1)
            assert [row for row in rows_of(app) if not row.isascii()] == []
        await pilot.press("escape", "escape", "s")
        await pilot.pause()
        assert text_of(app).isascii()


async def test_panels_paint_only_when_their_view_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = fakes.loading()
    async with running(snapshot, (120, 40)) as (app, engine, pilot):
        workers = app.screen.worker_panel  # type: ignore[attr-defined]
        painted: list[int] = []
        original = workers.paint
        monkeypatch.setattr(workers, "paint", lambda *args: painted.append(1) or original(*args))
        await give(engine, pilot, replace(snapshot, t=snapshot.t + 0.25))
        assert painted == []
        await give(engine, pilot, replace(snapshot, t=snapshot.t + 2))
        assert painted == [1]


async def test_asking_panels_for_their_rows_does_not_paint_them_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    snapshot = fakes.loading()
    async with running(snapshot, (120, 40), log=tmp_path / "server.log") as (app, engine, pilot):
        await give(engine, pilot, snapshot)
        await give(engine, pilot, snapshot)
        painted: list[str] = []
        for number, panel in app.screen.panels.items():  # type: ignore[attr-defined]

            def paint(*args: object, number: str = number, original: Callable[..., object] = panel.paint) -> object:
                painted.append(number)
                return original(*args)

            monkeypatch.setattr(panel, "paint", paint)
        for step in range(1, 5):
            await give(engine, pilot, replace(snapshot, t=snapshot.t + step / 10))
        assert painted == []
        await give(engine, pilot, replace(snapshot, t=snapshot.t + 60))
        assert {"1", "3", "4"} <= set(painted)


async def test_the_log_panel_keeps_the_rows_that_it_shows(tmp_path: Path) -> None:
    async with running(fakes.loading(), (120, 40), log=tmp_path / "server.log") as (app, engine, pilot):
        await pilot.press("4", "z", "u")  # every line
        await pilot.pause()
        await give(engine, pilot, fakes.loading(905.0))
        panel = app.screen.panels["4"]  # type: ignore[attr-defined]
        assert len(panel.viewport.shown) == panel.size.height - 2  # title and status


async def test_a_key_of_the_hidden_log_acts_on_its_newest_lines(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    async with running(fakes.loading(), (60, 15), log=path) as (app, engine, pilot):
        await pilot.press("4")
        await pilot.pause()
        await pilot.press("3")
        await pilot.pause()
        before = path.stat().st_size
        with path.open("a") as file:
            file.writelines(f"[2026-11-29 12:05:00 TP0] new words {n} of {n * n}\n" for n in range(100))
        stat = path.stat()
        engine.log_text.follow(LogReading(str(path), f"{stat.st_dev}:{stat.st_ino}", 0, "", stat.st_size))
        await give(engine, pilot, fakes.loading())
        await pilot.press("pageup")
        await pilot.pause()
        panel = app.screen.panels["4"]  # type: ignore[attr-defined]
        assert not panel.viewport.following
        assert panel.viewport.shown[0].row.offset > before


@pytest.mark.parametrize("key", ["o", "m", "pageup", "slash"])
async def test_the_first_key_of_a_log_that_was_never_shown_does_what_it_says(key: str, tmp_path: Path) -> None:
    step = NextStep("Read the log around the first cause", key="o", line=2)
    crashed = fakes.crashed()
    snapshot = replace(crashed, verdict=replace(crashed.verdict, next=(step,)))
    async with running(snapshot, (60, 15), log=tmp_path / "server.log") as (app, _, pilot):
        panel = app.screen.panels["4"]  # type: ignore[attr-defined]
        assert not panel.display
        await pilot.press(key)
        await pilot.pause()
        await pilot.pause()
        assert panel.display and panel.has_focus
        if key == "o":
            assert panel.viewport.chosen.row.line.number == 2
        if key == "slash":
            assert panel.prompt.open
        else:
            assert not panel.viewport.following


@pytest.mark.parametrize("size", SIZES)
async def test_what_a_command_said_that_was_no_server_is_on_the_screen(size: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    ended = Verdict("crashed", "the command ended with code 1 before it became a server", rule="command-ended")
    snapshot = Snapshot(t=5.0, log=LogState(path=str(path), size=200), verdict=ended)
    async with running(Snapshot(t=1.0), size, log=path) as (app, engine, pilot):
        assert "sgmon demo" in text_of(app)
        await give(engine, pilot, snapshot)
        await pilot.pause()
        words = text_of(app)
        assert "Load weight" in words or "shards" in words, "the end of the log"
        assert "sgmon demo" not in words
        assert " d stack" not in words


async def test_a_sleeper_that_wakes_for_a_moment_keeps_its_place() -> None:
    snapshot = fakes.stuck()
    awake = tuple(
        replace(p, state="R", call=None, wchan=None) if p.rank == "TP1" else p for p in snapshot.procs.processes
    )
    async with running(snapshot, (120, 60)) as (app, engine, pilot):
        before = app.screen.worker_panel.text  # type: ignore[attr-defined]
        await give(engine, pilot, replace(snapshot, t=snapshot.t + 1, procs=replace(snapshot.procs, processes=awake)))
        row = next(line for line in app.screen.worker_panel.text.splitlines() if " TP1 " in line)  # type: ignore[attr-defined]
        assert row in before


async def test_a_panel_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGMON_STRICT_PANELS")
    snapshot = fakes.loading()
    async with running(snapshot, (120, 40)) as (app, engine, pilot):
        gpus = app.screen.panels["2"]  # type: ignore[attr-defined]
        monkeypatch.setattr(gpus, "select", lambda snapshot: 1 / 0)
        await give(engine, pilot, fakes.stuck())
        text = text_of(app)
        assert "this panel failed" in text
        assert "ZeroDivisionError" in text
        assert "!TP3" in text


async def test_the_first_frame_is_painted_from_what_the_engine_has() -> None:
    async with running(fakes.ready(), (80, 24)) as (app, engine, _):
        assert len(engine.subscribers) == 1
        assert "READY" in rows_of(app)[0]
        assert "/health 200 in 1.0s" in text_of(app)


async def test_an_empty_snapshot_is_no_trouble() -> None:
    for size in SIZES:
        async with running(Snapshot(), size) as (app, _, _):
            assert "WAITING" in rows_of(app)[0]


async def test_resize_through_all_layouts() -> None:
    async with running(fakes.stuck(), (200, 50)) as (app, _, pilot):
        for size in ((60, 15), (120, 40), (30, 8), (80, 60), (60, 40), (120, 20), (200, 50)):
            await resize(pilot, *size)
            await pilot.pause()
            assert "STALLED" in rows_of(app)[0]
            assert len(rows_of(app)) == size[1]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("number", ["1", "2", "3", "4", "5"])
async def test_a_zoomed_panel_has_all_the_room(size: tuple[int, int], number: str) -> None:
    async with running(fakes.stuck(), size) as (app, _, pilot):
        await pilot.press(*(["2"] if number == "1" else []), number, "z")
        await pilot.pause()
        body = app.screen.query_one("#body")
        shown = [panel for panel in body.children if panel.display]
        assert [panel.size for panel in shown] == [body.size]


async def test_every_action_is_in_the_palette_by_its_name() -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        commands = {one.title: one for one in app.get_system_commands(app.screen)}
        for words in (
            "Why: all evidence, all next steps, history",
            "Stacks of all ranks, merged, 3 samples",
            "Search",
        ):
            assert words in commands
        await commands["Why: all evidence, all next steps, history"].callback()  # type: ignore[misc]
        await pilot.pause()
        assert "what was not seen, next steps, history" in text_of(app)


async def test_keys_can_be_others_and_an_unknown_id_is_said() -> None:
    settings = Settings(keys=(("overview.why", "y"), ("overview.whi", "w")))
    async with running(fakes.stuck(), (120, 40), settings) as (app, _, pilot):
        await pilot.pause()
        assert any("did you mean 'overview.why'" in note.message for note in app._notifications)
        await pilot.press("v")
        assert isinstance(app.screen, Overview)
        await pilot.press("y")
        await pilot.pause()
        assert "what was not seen, next steps, history" in text_of(app)


async def test_a_key_that_there_is_not_is_said_and_the_others_work() -> None:
    keys = (("overview.why", "ctrlx, f9"), ("overview.zoom", ""), ("overview.dump", "ctrl+x,?,slash,alt+d,Ä"))
    async with running(fakes.stuck(), (120, 40), Settings(keys=keys)) as (app, _, pilot):
        await pilot.pause()
        said = sorted(note.message for note in app._notifications)
        assert len(said) == 2, said
        assert said[0].startswith(
            "config: 'overview.why' = 'ctrlx, f9': there is no key 'ctrlx'; did you mean 'ctrl+x'"
        )
        assert "there is no key ''; keys are written as" in said[1]
        await pilot.press("f9")
        await pilot.pause()
        assert "what was not seen, next steps, history" in text_of(app)


async def test_the_palette_begins_with_the_focused_panel_and_ends_with_what_only_moves() -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        await pilot.press("4", "colon")
        listed = app.screen.query_one(CommandList)
        while not listed.option_count:  # they are gathered by a worker
            await pilot.pause(0.02)
        titles = [str(option.hit.text) for option in listed.options]
        places = [titles.index(one) for one in ("Search", "Why: all evidence, all next steps, history",
                  "Quit at once", "Up one row", "Panel startup; again: zoom", "Theme")]  # fmt: skip
        assert places[:3] == sorted(places[:3]) and places[0] < 3
        assert titles.index("Copy selected text") > places[2], "of every screen, and mostly nothing is selected"
        assert min(places[3:]) > places[2] and places[-1] == len(titles) - 1


async def test_help_is_about_the_focused_panel_first() -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        await pilot.press("4", "question_mark")
        await pilot.pause()
        assert "in the log" in rows_of(app)[2]


PAGES = pytest.mark.parametrize(
    "page", [WhyScreen, lambda: StackScreen((5,), "TP5"), Picker], ids=["why", "stacks", "picker"]
)


@PAGES
async def test_a_snapshot_that_arrives_while_a_page_opens(page: Callable[[], Screen[object]]) -> None:
    """The page is on the stack of pages before its parts are there."""
    crashed = fakes.crashed()
    async with running(fakes.stuck()) as (app, _, pilot):
        opened = app.push_screen(page())
        app.on_snapshot_arrived(SnapshotArrived(crashed))
        await opened
        await pilot.pause()
        assert app.session.latest is crashed
        assert state_style("crashed").word in text_of(app) or isinstance(app.screen, Picker)


@PAGES
async def test_the_application_ends_while_a_page_opens(page: Callable[[], Screen[object]]) -> None:
    """Its parts are not there, then."""
    async with running(fakes.stuck()) as (app, _, _):
        app.push_screen(page())
        app.exit()
