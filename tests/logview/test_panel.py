"""The panel with keys, in a headless application."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.pilot import Pilot

from sgmon.analyse.log.index import LogIndex
from sgmon.model import LogLine, LogReading
from tests.logview.fakes import dated, describe, index_of, reading, settle, snapshot
from tests.ui.screen import resize
from widgets.logview import HELD_BACK, LogPanel


class Screenful(App[None]):
    """One panel, and the keys that belong to the screen."""

    BINDINGS = [Binding(key, f"heard('{key}')") for key in "12345dDqxz?"] + [
        Binding("space", "heard('space')"),
        Binding("escape", "heard('escape')"),
    ]

    def __init__(self, index: LogIndex) -> None:
        super().__init__()
        self.index = index
        self.heard: list[str] = []

    def compose(self) -> ComposeResult:
        yield LogPanel(self.index)

    def on_mount(self) -> None:
        self.panel.focus()

    @property
    def panel(self) -> LogPanel:
        return self.query_one(LogPanel)

    def action_heard(self, key: str) -> None:
        self.heard.append(key)


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGMON_STRICT_PANELS", "1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    with path.open("w") as out:
        for n in range(1, 301):
            if n % 100 == 0:
                out.write(dated(n, f"ValueError: number {n}", "TP1"))
            elif n % 50 == 0:
                out.write("".join(dated(n, "Load weight begin.", f"TP{r}") for r in range(2)))
            else:
                out.write(dated(n, f"words {n}", f"TP{n % 2}"))
    return path


async def show(pilot: Pilot[None], t: float = 1.0, **facts: float) -> str:
    app = pilot.app
    assert isinstance(app, Screenful)
    settle(app.index)
    app.panel.receive(snapshot(t, ranks=2, **facts))  # type: ignore[arg-type]
    await pilot.pause()
    return app.panel.text


async def press(pilot: Pilot[None], *keys: str) -> str:
    app = pilot.app
    assert isinstance(app, Screenful)
    await pilot.press(*keys)
    deadline = time.monotonic() + 5
    while app.panel.search.is_looking or app.panel.search.is_counting or app.panel.search.share < 1:
        assert time.monotonic() < deadline
        await pilot.pause(0.01)
    await pilot.pause()
    return app.panel.text


def grow(app: Screenful, path: Path, text: str) -> None:
    with path.open("a") as out:
        out.write(text)
    app.index.follow(reading(path))


async def test_it_opens_at_the_end_and_follows(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        text = await show(pilot)
        assert "follow" in text.splitlines()[0]
        assert "number 300" in text and "words 299" in text and "words 1\n" not in text
        grow(app, path, dated(301, "fresh words", "TP0"))
        assert "fresh words" in await show(pilot, 2.0)


async def test_up_stops_following_and_end_resumes_it(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        await press(pilot, "up")
        grow(app, path, dated(302, "later", "TP0") * 128)
        text = await show(pilot, 2.0)
        assert "▼ 128 new" in text and "later" not in text
        text = await press(pilot, "G")
        assert "follow" in text and "later" in text
        await press(pilot, "pageup")
        assert "paused (G follows)" in app.panel.text and "0 new" not in app.panel.text
        await press(pilot, "end")
        assert "follow" in app.panel.text


async def test_top_bottom_and_the_line_number(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        text = await press(pilot, "g")
        assert "words 1\n" in text and "line 1 of 303" in text
        text = await press(pilot, "down", "j", "down")
        assert "line 4 of 303" in text
        app.panel.goto_line(200)
        await pilot.pause()
        assert "line 200 of 303" in app.panel.text
        app.panel.goto_line(4000)
        assert "there is no line 4000" in app.panel.text


async def test_jumps(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        await press(pilot, "g")
        for wanted in ("number 100", "number 200", "number 300"):
            await press(pilot, "e")
            assert app.panel.viewport.chosen is not None and wanted in app.panel.viewport.chosen.row.message
        assert "no error further down" in await press(pilot, "e")
        await press(pilot, "E")
        assert "number 200" in app.panel.viewport.chosen.row.message
        await press(pilot, "comma")
        assert "Load weight" in app.panel.viewport.chosen.row.message
        assert "no warning further up" in await press(pilot, "W")


async def test_search_filter_and_inverse(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        await press(pilot, "slash", *"words 1", "5", "0"[:0], "enter")
        assert app.panel.search.pattern is not None and app.panel.search.pattern.text == "words 15"
        assert app.panel.viewport.chosen.row.message == "words 159"
        await press(pilot, "N")
        assert app.panel.viewport.chosen.row.message == "words 158"
        await press(pilot, "n")
        assert app.panel.viewport.chosen.row.message == "words 159"
        text = await press(pilot, "ampersand")
        assert "words 151" in text and "words 16" not in text and 'only "words 15"' in text
        text = await press(pilot, "exclamation_mark")
        assert "words 159" not in text and 'only !"words 15"' in text
        text = await press(pilot, "escape")
        assert "only" not in text.splitlines()[0] and app.heard == []
        await press(pilot, "escape")
        assert app.heard == ["escape"]  # with nothing to end here it is the screen's


def at(app: Screenful) -> str:
    assert app.panel.viewport.chosen is not None
    return app.panel.viewport.chosen.row.message


async def test_a_search_goes_on_at_the_other_end_and_counts(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        text = await press(pilot, "slash", *"words 29", "enter")  # 29 and 290 to 299; the end is followed: the last
        assert at(app) == "words 299" and '"words 29" 11/11' in text
        text = await press(pilot, "n")
        assert at(app) == "words 29" and "1/11" in text and "from the top again" in text
        text = await press(pilot, "N")
        assert at(app) == "words 299" and "from the end again" in text
        await press(pilot, "g", "slash", *"words 29", "enter")  # from where the reader is: forward
        assert at(app) == "words 29"
        assert "no match in 303 lines" in await press(pilot, "slash", *"no such text", "enter")


async def test_an_expression_that_is_none_is_said_to_be_taken_as_text(path: Path) -> None:
    with path.open("a") as out:
        out.write(dated(301, "call a|b(", "TP0"))
    app = Screenful(index_of(path))
    async with app.run_test(size=(120, 24)) as pilot:
        await show(pilot)
        text = await press(pilot, "slash", *"a|b(", "enter")
        assert at(app) == "call a|b(" and "its text is looked for" in text


async def test_next_hit_without_a_search_asks_for_one_and_swallows_no_key(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        text = await press(pilot, "n", "d")
        assert not app.panel.prompt.open and app.heard == ["d"]
        assert "press / first" in text


async def test_a_hit_beyond_the_right_edge_is_brought_into_view(path: Path) -> None:
    with path.open("a") as out:
        out.write(dated(301, "w" * 200 + " needle", "TP0"))
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        assert "needle" in await press(pilot, "slash", *"needle", "enter")
        assert "words 299" not in app.panel.text
        await press(pilot, "escape", "left")


async def test_typing_a_search_keeps_every_key_from_the_screen(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        text = await press(pilot, "slash", *"qd5x", "space", "z", "question_mark")
        assert "/qd5x z?" in text and app.heard == []
        await press(pilot, "backspace", "ctrl+w", "escape")
        assert not app.panel.prompt.open and app.panel.search.pattern is None


async def test_the_screens_own_keys_reach_it(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        await pilot.press(*"12345dDqxz", "space")
        assert app.heard == [*"12345dDqxz", "space"]


async def test_rank_filter(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        await press(pilot, "r")
        assert {p.row.line.rank for p in app.panel.viewport.shown} == {"TP0"}
        assert "TP0 only" in app.panel.text
        await press(pilot, "r")
        assert {p.row.line.rank for p in app.panel.viewport.shown} == {"TP1"}
        await press(pilot, "r")
        assert "only" not in app.panel.text


async def test_looks(path: Path) -> None:
    with path.open("a") as out:
        out.write(dated(301, "known noise") * 3 + dated(302, "long " * 60, "TP0"))
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        assert "3 known harmless lines (f shows)" in await show(pilot)
        assert (await press(pilot, "f")).count("known noise") == 3
        assert "known harmless" in await press(pilot, "f")
        assert (await press(pilot, "l")).count("long") == 60
        assert (await press(pilot, "l")).count("long") < 15
        assert (await press(pilot, "enter")).count("long") == 60
        await press(pilot, "enter", "t")  # this snapshot knows no start to count from
        assert ":" not in app.panel.text.splitlines()[5]
        await press(pilot, "right")
        assert app.panel.row_format.x == 16
        await press(pilot, "left", "u")
        assert app.panel.text.count("known noise") == 3 and "every line" in app.panel.text


async def test_copy_takes_the_whole_line(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        await press(pilot, "g", "c")
        assert app.clipboard.endswith("TP1] words 1") and app.clipboard.startswith("[")
        assert "copied line 1" in app.panel.text


async def test_silence_at_the_end_is_live(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        assert "silent for" not in await show(pilot, 10.0)
        text = await show(pilot, 272.0)
        assert "silent for 4m30s" in text and "last byte 4m30s ago" in text
        assert "number 300" in text


async def test_growth_and_the_writers_place(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(120, 24)) as pilot:
        await show(pilot, 1.0)
        grow(app, path, dated(303, "x" * 100, "TP0") * 100)
        text = await show(pilot, 3.0, last_byte_t=3.0)
        assert "KiB/s" in text and "fully read" in text


@pytest.mark.parametrize(
    ("kind", "words"), [("pipe", "tee FILE"), ("pty", "sgmon run"), ("socket", "journalctl"), ("null", "/dev/null")]
)
async def test_no_file_says_what_can_be_done(kind: str, words: str) -> None:
    index = LogIndex(describe)
    index.follow(LogReading(path="", kind=kind))
    app = Screenful(index)
    async with app.run_test(size=(100, 24)) as pilot:
        assert words in await show(pilot)


async def test_truncation_under_the_readers_feet(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot)
        await press(pilot, "pageup")
        path.write_text("anew\n")
        app.index.follow(reading(path, "truncated"))
        text = await show(pilot, 2.0)
        assert "anew" in text and "words" not in text and "follow" in text


async def test_every_size(path: Path) -> None:
    app = Screenful(index_of(path))
    async with app.run_test(size=(120, 40)) as pilot:
        await show(pilot)
        for width, height in ((60, 15), (20, 3), (200, 60), (10, 1), (80, 24)):
            await resize(pilot, width, height)
            await pilot.pause()
            await press(pilot, "up", "pageup", "l", "down")
            assert len(app.panel.lines) <= max(1, height)
        assert "words" in app.panel.text


async def test_escapes_never_get_out(path: Path) -> None:
    with path.open("ab") as out:
        out.write(b"evil \x1b[31mred \x1b]0;title\x07 [/] [b]x \x9b5m \xe2\x80\xae tail\n" * 3)
    app = Screenful(index_of(path))
    async with app.run_test(size=(80, 24)) as pilot:
        text = await show(pilot)
        assert "evil red  [/] [b]x" in text
        strips = [app.panel.render_line(y) for y in range(24)]
        written = "".join(segment.text for strip in strips for segment in strip)
        assert not any(c in written for c in "\x1b\x07\x9b\u202e\x00")


class Counted(LogIndex):
    """Counts the lines that the main thread reads."""

    here = 0

    def _line(self, number: int, text: str) -> LogLine:
        self.here += threading.current_thread() is threading.main_thread()
        return super()._line(number, text)


async def test_a_key_reads_a_few_lines_of_a_big_log_on_the_screens_thread(tmp_path: Path) -> None:
    """Searches and filters go over all of its 240,000 lines, in threads of their own."""
    path = tmp_path / "big.log"
    with path.open("w") as out:
        for number in range(240_000):
            out.write(dated(5, f"Decode batch, #token: {number}" if number != 239_900 else "needle", "TP0"))
    index = Counted(describe)
    index.follow(reading(path))
    app = Screenful(index)
    async with app.run_test(size=(120, 40)) as pilot:
        await show(pilot)
        read = {}
        keys = "pageup g pagedown G r up R slash n e enter ampersand pageup escape l pageup W"
        for key in keys.split():
            before = index.here
            await pilot.press(key)
            read[key] = index.here - before
        assert max(read.values()) < 240_000 // 20, str(read)
        assert index.here > 0


def test_the_help_text_says_it() -> None:
    assert "stderr" in HELD_BACK and "/proc/PID/fd/1" in HELD_BACK and "NCCL_DEBUG" in HELD_BACK
    assert max(len(line) for line in HELD_BACK.splitlines()) < 120
