"""Where the log panel looks: following only at the end, the same rows from both sides."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sgmon.analyse.log.index import LogIndex
from tests.logview.fakes import dated, index_of, reading, settle
from widgets.log_rows import Folding
from widgets.log_viewport import Viewport
from widgets.log_window import Window


@pytest.fixture
def big(tmp_path: Path) -> LogIndex:
    """Some thousand lines of eight ranks, with bars, noise and silence, over many blocks."""
    dice = random.Random(7)
    with (tmp_path / "log").open("w") as out:
        t = 0
        for step in range(900):
            t += 300 if step % 111 == 0 else 1
            if step % 50 == 0:
                for rank in dice.sample(range(8), 8):
                    out.write(dated(t, f"Load weight begin. step {step}", f"TP{rank}"))
            elif step % 31 == 0:
                out.write("".join(f"\rLoad: {n}%|#| {n}/100 [00:01]" for n in range(100)) + "\n")
            elif step % 7 == 0:
                out.write(dated(t, "known noise"))
            else:
                out.write(dated(t, f"words {step} " + "w" * dice.randrange(200), f"TP{step % 8}"))
    index = index_of(tmp_path / "log")
    settle(index)
    return index


def test_forward_and_backward_give_the_same_rows(big: LogIndex) -> None:
    window = Window(big)
    forward = window.after((-1, 0, 0), 10_000)
    assert [p.key for p in window.before(None, 10_000)] == [p.key for p in forward]
    assert len(forward) > 700 and big.blocks > 4
    assert [p.key for p in forward] == sorted(p.key for p in forward)
    middle = forward[len(forward) // 2]
    assert window.after(middle.key, 1) == [middle]
    assert window.before(middle.key, 1) == [forward[len(forward) // 2 - 1]]


def test_folding_does_not_stop_at_a_block_border(big: LogIndex) -> None:
    rows = Window(big).after((-1, 0, 0), 10_000)
    loads = [p.row for p in rows if p.row.message.startswith("Load weight begin")]
    assert [row.count for row in loads] == [8] * 18


def test_walking_up_row_by_row_meets_every_row(big: LogIndex) -> None:
    viewport = Viewport(Window(big))
    viewport.fill(20)
    every = [p.key for p in Window(big).after((-1, 0, 0), 10_000)]
    seen = [viewport.cursor]
    for _ in range(len(every) + 5):
        viewport.move(-1)
        viewport.fill(20)
        if viewport.cursor != seen[-1]:
            seen.append(viewport.cursor)
    assert seen == every[::-1]


def test_any_move_up_stops_following_and_the_end_resumes_it(big: LogIndex) -> None:
    viewport = Viewport(Window(big))
    viewport.fill(10)
    assert viewport.following
    viewport.move(-1)
    assert not viewport.following
    viewport.fill(10)
    viewport.move(1)
    assert viewport.following
    viewport.scroll(-3)
    viewport.fill(10)
    assert not viewport.following
    viewport.scroll(3)
    assert viewport.following


def test_a_page_down_from_the_top_reaches_the_end(big: LogIndex) -> None:
    viewport = Viewport(Window(big))
    viewport.fill(20)
    viewport.first()
    pages = 0
    while not viewport.following and pages < 200:
        viewport.fill(20)
        viewport.scroll(19)
        pages += 1
    assert viewport.following and pages > 30


def test_growth_does_not_move_a_reader_who_left_the_end(big: LogIndex, tmp_path: Path) -> None:
    viewport = Viewport(Window(big))
    viewport.fill(10)
    viewport.move(-30)
    before = [p.key for p in viewport.fill(10)]
    with (tmp_path / "log").open("a") as out:
        out.write(dated(9999, "more") * 400)
    big.follow(reading(tmp_path / "log"))
    settle(big)
    assert [p.key for p in viewport.fill(10)] == before
    assert big.total - viewport.left_at[1] == 400
    viewport.following = True
    assert viewport.fill(10)[-1].row.message == "more"


def test_wrapped_rows_hold_the_whole_line(big: LogIndex) -> None:
    window = Window(big)
    window.wrap_width = 30
    placed = [p for p in window.after((-1, 0, 0), 5000) if p.row.message.startswith("words 3 ")]
    assert "".join(p.text for p in placed) == placed[0].row.message
    assert len(placed) > 2


def test_a_rank_filter_leaves_its_lines_only(big: LogIndex) -> None:
    window = Window(big)
    window.folding = Folding(wanted=lambda line: line.rank == "TP3")
    rows = window.after((-1, 0, 0), 5000)
    assert {p.row.line.rank for p in rows if p.row.kind == "line"} == {"TP3"}


def test_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    viewport = Viewport(Window(index_of(tmp_path / "log")))
    assert viewport.fill(10) == [] and viewport.chosen is None and viewport.at_end
    viewport.move(-1)
    viewport.scroll(5)
    viewport.first()
    assert viewport.fill(10) == []
