"""Where the parts of the overview stand, and what is cut last."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from sgmon.model import Baseline, NextStep, UsualPhase, Verdict
from tests.diagnosis.replay import replay
from tests.ui import fakes
from tests.ui.screen import running, text_of
from tui_app.arrangement import Place, Wants, arrange
from widgets.line import plain
from widgets.log_display import LogDisplay
from widgets.startup import paint as paint_startup
from widgets.startup import select as select_startup
from widgets.verdictbar import VerdictView, paint

SIZES = ((60, 15), (80, 24), (100, 30), (120, 40), (200, 50), (50, 60), (240, 24), (79, 34), (30, 8))
IDS = [f"{width}x{height}" for width, height in SIZES]


def wants(ranks: int, has_ended: bool = False) -> Wants:
    return Wants(5, 12, {"1": 7, "2": 2 + ranks, "3": 4 + ranks, "5": 4}, has_ended)


@pytest.mark.parametrize("ranks", [1, 8, 16, 64])
@pytest.mark.parametrize("size", SIZES, ids=IDS)
def test_nothing_overlaps_and_every_row_is_used(size: tuple[int, int], ranks: int) -> None:
    width, height = size
    made = arrange(width, height, wants(ranks), "1")
    body = height - 1 - made.has_tabs - made.verdict
    cells: set[tuple[int, int]] = set()
    for place in made.places.values():
        own = set(itertools.product(range(place.x, place.x + place.width), range(place.y, place.y + place.height)))
        assert not own & cells
        cells |= own
    assert max(x for x, _ in cells) == width - 1
    assert max(y for _, y in cells) == body - 1


def test_after_the_end_the_log_gets_the_room() -> None:
    before, after = arrange(120, 40, wants(8), "1"), arrange(120, 40, wants(8, has_ended=True), "1")
    assert after.places["4"].height > 12 > before.places["4"].height


@pytest.mark.parametrize("size", [(80, 24), (100, 24)], ids=str)
def test_after_the_end_a_low_screen_gives_the_half_to_the_log(size: tuple[int, int]) -> None:
    made = arrange(*size, wants(8, has_ended=True)._replace(verdict=8), "1")
    assert made.places["4"].height >= (size[1] - 1 - made.verdict) // 2
    assert {place.height for number, place in made.places.items() if number in "25"} == {1}  # titles to go there
    chosen = arrange(*size, wants(8, has_ended=True)._replace(verdict=8), "2")
    assert chosen.places["2"].height >= 3


def test_what_would_be_blank_beside_the_log_goes_to_the_log() -> None:
    few = Wants(5, 10, {"1": 7, "2": 8, "3": 6, "5": 4}, gpus=lambda _width, height: min(height, 8))
    places = arrange(200, 50, few, "1").places
    assert places["4"].width == 200 and places["4"].height > 20
    many = few._replace(gpus=lambda _width, height: min(height, 30))
    assert arrange(200, 50, many, "1").places["4"].x == 112


def test_a_wide_and_low_screen_has_the_log_beside_the_active_panel() -> None:
    assert arrange(200, 15, wants(8), "3").places.keys() == {"3", "4"}
    assert arrange(200, 15, wants(8), "4").places["4"].width == 200


def test_a_wide_screen_has_the_log_beside_the_panels() -> None:
    places = arrange(200, 50, wants(8), "1").places
    assert places["4"] == Place(112, 0, 88, 37)
    assert all(place.x + place.width < 112 for number, place in places.items() if number != "4")


def test_a_narrow_and_tall_screen_gives_rows_to_the_evidence() -> None:
    assert arrange(50, 60, wants(8), "1").verdict == 12


@pytest.mark.parametrize("size", SIZES[:6], ids=IDS[:6])
async def test_the_first_step_stands_whole_at_every_size(size: tuple[int, int]) -> None:
    async with running(fakes.stuck(), size) as (app, _, _):
        step = app.screen.shown.verdict.next[0]  # type: ignore[attr-defined]
        words = "".join(text_of(app).split())
        assert "".join(step.text.split()) in words
        assert "".join(step.command.split()) in words or step.key


def test_a_step_is_wrapped_and_not_cut_on_a_low_bar() -> None:
    step = NextStep("look at the mount and at every client of it", "cat /proc/fs/nfsfs/volumes /proc/net/rpc/nfs")
    verdict = Verdict("stalled", "TP3 is stuck", next=(step, NextStep("another")))
    rows = paint(VerdictView(verdict, 9, (), 0, ""), 60, 3)
    assert len(rows) == 3
    assert step.command in plain(rows[-1])
    assert step.text in plain(rows[-2])


def test_the_failed_phase_shows_a_cross_and_no_arrow() -> None:
    view = select_startup(replay("gpu-oom-frac")[1])
    words = "\n".join(plain(line) for line in paint_startup(view, 80, 9))
    assert view.state == "crashed"
    assert words.count("✗") == 1
    assert "▶" not in words and "▷" not in words


def test_the_times_of_the_phases_stand_beside_the_usual_ones() -> None:
    base = Baseline(
        like="the same",
        count=3,
        ready_median_s=90.0,
        phases=(UsualPhase("spawn", 8.0, 9.0), UsualPhase("weights", 60.0, 70.0)),
    )
    view = select_startup(replace(fakes.loading(), baseline=base))
    words = [plain(line) for line in paint_startup(view, 100, 12)]
    usual = next(row for row in words if row.startswith(" usual"))
    assert "8s" in usual and "1m00s" in usual and "total 1m30s" in usual
    assert any(row.startswith(" took") and "total" in row for row in words)


async def test_no_stack_is_offered_when_no_process_is_left_and_o_shows_the_first_error() -> None:
    crashed = replay("gpu-oom-frac")[1]
    step = crashed.verdict.next[0]
    async with running(crashed, (120, 40)) as (app, _, pilot):
        last = text_of(app).splitlines()[-1]
        assert " d stack" not in last and "D all stacks" not in last
        asked: list[int] = []
        log = app.screen.panels["4"]  # type: ignore[attr-defined]
        log.goto_line = asked.append
        await pilot.press("o")
        assert isinstance(log, LogDisplay) and log.has_focus
        assert asked == [step.line]


async def test_a_click_on_the_verdict_says_why() -> None:
    async with running(fakes.stuck(), (120, 40)) as (app, _, pilot):
        await pilot.click("#verdict", offset=(30, 1))
        await pilot.pause()
        assert "what was not seen, next steps, history" in text_of(app)
