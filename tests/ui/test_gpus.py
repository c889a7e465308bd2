"""Panel 2 and a GPU's page: which GPU differs and why, at every size; odd counts, slices, a silent driver."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from sgmon.analyse.gpu.summary import GpuSummary, Growth, Stage
from sgmon.model import Gpu, GpuProcess, GpuReading, GpuSlice, Missing, Series, Snapshot
from tests.diagnosis.replay import replay
from tests.ui import fakes
from tests.ui.screen import SIZES, give, rows_of, running, text_of
from tui_app.gpu_screen import GpuScreen
from tui_app.overview import Overview
from widgets import gpu_layout, gpu_view
from widgets.gpu_history import History, history, narrowed, stage_row, strip_rows
from widgets.gpu_page import gpu_lines, memory_bar
from widgets.gpu_text import growth_words
from widgets.line import Line, plain, width_of

GIB = 1024**3


def text(rows: list[Line]) -> str:
    return "\n".join(plain(row).rstrip() for row in rows)


def shown(snapshot: Snapshot, width: int, height: int) -> str:
    return text(gpu_layout.paint(gpu_view.select(snapshot), width, height))


def with_gpus(*gpus: Gpu, **reading: object) -> Snapshot:
    return replace(fakes.loading(), gpu=GpuReading(gpus, "580.159", "NVML", **reading))


@pytest.fixture(scope="module")
def spin() -> Snapshot:
    """Two real H200s: TP0 spins in NCCL, TP1 never came."""
    return replay("h200x2-nccl-spin", until=150.0)[1]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_gpu_that_differs_is_seen_at_every_size(spin: Snapshot, size: tuple[int, int]) -> None:
    async with running(spin, size) as (app, _, pilot):
        if size == (60, 15):
            await pilot.press("2")
            await pilot.pause()
        words = text_of(app)
        assert "!1  TP1" in words or "▸1  TP1" in words
        assert "!0  TP0" not in words  # it spins because TP1 never came: one thing stands out
        if size[1] >= 40:
            assert "spins in a collective: pinned at 100 %" in words
            assert "waited for: idle while GPU 0 spins" in words
            assert "flat for 30s" in words
        if size == (120, 40):
            assert "125 W flat (idle level 122 W, work up to 136 W)" in words


async def test_enter_opens_the_gpu_that_differs_and_n_turns_to_the_next(spin: Snapshot) -> None:
    async with running(spin, (120, 60)) as (app, _, pilot):
        await pilot.press("2", "enter")
        await pilot.pause()
        assert isinstance(app.screen, GpuScreen)
        words = text_of(app)
        assert "waited for: idle while GPU 0 spins in a collective" in words
        assert "w weights 7.7" in words and " weights         7.7 GiB" in words
        assert "│graphs──" in words
        await pilot.press("n")
        await pilot.pause()
        words = text_of(app)
        assert "GPU 0" in words
        assert "pinned at 100 %, flat 125 W, not far above its idle level (122 W)" in words
        await pilot.press("q")
        assert isinstance(app.screen, Overview)


async def test_the_cursor_moves_over_gpus_and_enter_takes_the_one_below_it() -> None:
    async with running(fakes.loading(), (120, 40)) as (app, _, pilot):
        await pilot.press("2", "down", "down", "enter")
        await pilot.pause()
        assert isinstance(app.screen, GpuScreen)
        assert app.screen.index == 2


async def test_zoomed_each_gpu_has_its_history_and_stages(spin: Snapshot) -> None:
    async with running(spin, (120, 40)) as (app, engine, pilot):
        await pilot.press("2", "2")
        await pilot.pause()
        await give(engine, pilot, replace(spin, t=spin.t + 1))
        words = text_of(app)
        assert words.count("│graphs──") == 2
        assert words.count("log: weights 7.7 + KV 118.3 GiB, 12.3 GiB left") == 2


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("count", [0, 1, 2, 8, 16])
async def test_any_number_of_gpus_fits(count: int, size: tuple[int, int]) -> None:
    snapshot = with_gpus(*(fakes.gpu(i) for i in range(count)))
    async with running(snapshot, size) as (app, _, pilot):
        assert {cell_len(row) for row in rows_of(app)} == {size[0]}
        words = text_of(app)
        if count == 0:
            assert "no GPU on this node" in words
        elif count == 16:
            assert "0-15" in words
        await pilot.press("2", "2")
        await pilot.pause()
        assert {cell_len(row) for row in rows_of(app)} == {size[0]}


async def test_gpus_that_join_and_leave_are_shown_as_they_come() -> None:
    async with running(with_gpus(*(fakes.gpu(i) for i in range(2))), (120, 40)) as (app, engine, pilot):
        await pilot.press("2", "down")
        for count in (4, 1, 0):
            await give(engine, pilot, with_gpus(*(fakes.gpu(i) for i in range(count))))
            view = app.screen.panels["2"].view  # type: ignore[attr-defined]
            assert [row.indexes for row in view.rows] == [(i,) for i in range(count)]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_silent_driver_is_said_in_the_panel(size: tuple[int, int]) -> None:
    """The known GPUs stay by name; why there is no reading comes first."""
    gpus = tuple(Gpu(i, "NVIDIA H200", total_bytes=140 * GIB, error="no reading") for i in range(8))
    silent = with_gpus(
        *gpus,
        unavailable="NVML silent for 12s: the driver does not answer (nvmlDeviceGetName of GPU 3 hangs)",
        remedy="look for Xid in dmesg",
        state="silent",
        failing_s=12.0,
    )
    async with running(silent, size) as (app, _, _):
        words = text_of(app)
        assert "NVML silent for 12s: the driver does not" in words
        assert "no reading" in words
        assert " 0%" not in words.split("NVML silent")[1].split("\n")[0]


def test_mig_slices_are_rows_with_their_own_memory_and_holders() -> None:
    cut = fakes.gpu(
        0,
        mig=True,
        processes=(),
        ranks=(),
        used_bytes=None,
        slices=(
            GpuSlice(0, "NVIDIA H200 MIG 3g.71gb", "MIG-a", 71 * GIB, 40 * GIB, (GpuProcess(7, 40 * GIB, "TP0"),)),
            GpuSlice(1, "NVIDIA H200 MIG 1g.18gb", "MIG-b", 18 * GIB, None),
        ),
    )
    words = shown(with_gpus(cut), 100, 8)
    assert "40.0/71.0" in words
    assert "3g.71gb slot 0: TP0 7" in words
    assert "?/18.0" in words
    assert "MIG slices" in text(gpu_lines(with_gpus(cut), 0, 100))


def test_who_holds_the_memory_is_named() -> None:
    held = fakes.gpu(
        0,
        processes=(
            GpuProcess(4800, 60 * GIB, "TP0", "sglang::scheduler_TP0"),
            GpuProcess(5999, 12 * GIB, name="sglang::scheduler_TP1"),
        ),
    )
    words = shown(with_gpus(held), 120, 8)
    assert "12.0 GiB held by pid 5999, sglang::scheduler_TP1 of a server that is gone" in words
    assert (
        "held: TP0 60.0, pid 5999, sglang::scheduler_TP1 of a server that is gone 12.0, unaccounted 4.1 GiB" in words
    )
    page = text(gpu_lines(with_gpus(held), 0, 120))
    assert "in use, but listed for no process" in page
    bar = plain(memory_bar(held, gpu_view.select(with_gpus(held)).rows[0].summary, 80))
    assert (bar.count("r"), bar.count("x"), bar.count("?")) == (60, 12, 4)


def test_one_of_eight_with_less_memory_stands_apart_when_folded() -> None:
    gpus = [fakes.gpu(i, 40.0 if i == 5 else 76.1) for i in range(8)]
    words = shown(with_gpus(*gpus), 60, 4)
    assert "!5" in words
    assert "holds 36.1 GiB less than the GPUs of the other ranks" in words
    assert "0-4,6-7" in words


def test_errors_of_the_card_come_first() -> None:
    bad = fakes.gpu(1, xids=(79, 79, 45), ecc_errors=2, throttle=("thermal (hardware)",))
    words = shown(with_gpus(fakes.gpu(0), bad), 100, 8)
    assert "the driver reported Xid 79 (fell off the bus), 45 (clean-up" in words
    assert "throttled: thermal (hardware)" in words
    assert "2 uncorrected ECC errors" in words


def test_not_available_has_a_reason_on_the_page_and_is_never_zero() -> None:
    blind = fakes.gpu(
        0,
        util_percent=None,
        power_w=None,
        temperature_c=None,
        missing=(Missing("power_mw", "not supported by this GPU"), Missing("util", "no permission")),
    )
    page = text(gpu_lines(with_gpus(blind), 0, 100))
    assert "power           not supported by this GPU" in page
    assert "utilisation     no permission" in page
    assert "0%" not in page
    assert "0 W" not in page.replace("0-700 W", "").replace("limit 700 W", "")


# history


def test_gaps_stay_gaps_from_the_first_reading_to_now() -> None:
    points = tuple((float(t), None if 50 <= t < 60 else 40e9) for t in range(100))
    used = history(points, points, points, 99.0)
    assert (used.slot_s, len(used.used)) == (1.0, 101)
    assert [slot is None for slot in used.used[49:61]] == [False, *[True] * 10, False]
    snapshot = replace(fakes.loading(t=99.0), series=(Series("gpu0.used", points),))
    strip = next(plain(row) for row in gpu_lines(snapshot, 0, 140) if plain(row).startswith(" memory  "))
    assert " " * 10 + "▄" in strip


def test_a_narrow_history_joins_slots_and_hides_no_reading() -> None:
    wide = History(100.0, 1.0, (None, 1.0, None, None, 5.0, None), (), ())
    assert narrowed(wide, 3)[:3] == (100.0, 2.0, (1.0, None, 5.0))


def test_stages_stand_where_they_were() -> None:
    stages = (Stage("weights", 2, 14), Stage("kv", 14.5, 14.6), Stage("graphs", 15, None))
    row = plain(stage_row(History(30.0, 1.0, (1.0,) * 30), stages, 30))
    assert row == "  │weights────k│graphs─────────"[: len(row)]
    assert width_of(((row, ""),)) == 30
    short = plain(stage_row(History(300.0, 10.0, (1.0,) * 30), stages, 30))
    assert short.startswith("wk│graphs──")


def test_a_growth_that_is_over_is_not_shown_as_going_on() -> None:
    """The rate is over ten seconds: seconds after the last step it still said "+14.3 GiB/s"."""
    rate = Growth(rate=14.3 * 2**30, flat_s=1.0)
    assert growth_words(GpuSummary(0, growth=rate)) == "+14.3 GiB/s"
    assert growth_words(GpuSummary(0, growth=replace(rate, flat_s=6.0))) == "flat for 6s"


def test_a_stage_has_its_word_where_the_next_leaves_room_and_letters_are_explained() -> None:
    short = (Stage("weights", 2, 4), Stage("kv", 12, 12.5), Stage("graphs", 13, None))
    assert plain(stage_row(History(30.0, 1.0, (1.0,) * 30), short, 30)).startswith("  │weights  k│graphs──")
    assert plain(stage_row(History(30.0, 1.0, (1.0,) * 30), (), 30)) == " " * 30
    shown = strip_rows(History(30.0, 1.0, *((1.0,) * 30,) * 3), short, (80 * GIB, 700.0), 80)
    assert any(plain(row).strip() == "k KV" for row in shown)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_letters_of_the_memory_bar_stand_below_it_at_every_width(width: int) -> None:
    held = fakes.gpu(0, 76.1, processes=(GpuProcess(4800, 60 * GIB, "TP0", "sglang::scheduler_TP0"),))
    rows = [plain(row) for row in gpu_lines(with_gpus(held), 0, width)]
    bar = rows.index(" memory") + 1
    legend = " ".join(rows[bar + 1 : bar + 4])
    assert all(f" {letter} " in legend for letter in set(rows[bar].strip()))
    assert not any("…" in row for row in rows[bar : bar + 4])


def test_memory_that_stays_as_it_is_repaints_nothing_from_second_to_second() -> None:
    def seen(last_t: int) -> Snapshot:
        points = tuple((float(t), 4.0 * GIB) for t in range(61, last_t + 1))
        return replace(fakes.loading(t=99.0), series=(Series("gpu0.used", points),))

    rows = [gpu_view.select(seen(last_t), long=False).rows[0] for last_t in (96, 98, 99, 119)]
    assert rows[0].summary == rows[1].summary == rows[2].summary
    assert growth_words(rows[3].summary) == "flat for at least 50s" != growth_words(rows[0].summary)
