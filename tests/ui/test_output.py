"""What goes to the terminal: cells that differ, short sequences, one frame at a time."""

from __future__ import annotations

from unittest import mock

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.theme import BUILTIN_THEMES

from tests.ui.repeating import RepeatingScreen, RepeatingStream
from tui_app.output import difference as output_difference
from tui_app.output.abilities import QUESTION, Abilities, measured
from tui_app.output.background import is_light, light_by_environment
from tui_app.output.cells import Row, blank, put
from tui_app.output.difference import difference
from tui_app.output.link import LOST_S, SILENT_S, Link
from tui_app.output.pens import PLAIN, Pen, change, frugal, pen_of
from tui_app.output.sender import Sender
from tui_app.output.thin import Savings, frugal_rows, page_of

WIDTH, HEIGHT = 24, 4
PENS = (
    PLAIN,
    Pen("38;5;75"),
    Pen("31", "", frozenset("1")),
    Pen("", "48;5;236"),
    Pen("32", "", frozenset("7")),
    Pen("31", "", frozenset("7")),
    Pen("", "", frozenset("2")),
)
chars = st.sampled_from([*"aq~ ", " ", " ", "─", "·", "字"])


@st.composite
def screens(draw: st.DrawFn) -> list[Row]:
    rows = blank(WIDTH, HEIGHT)
    for row in rows:
        x = 0
        while x < WIDTH:
            char, pen = draw(chars), draw(st.sampled_from(PENS))
            for _ in range(draw(st.integers(1, 12))):
                if char == "字" and x + 1 < WIDTH:
                    row[x], row[x + 1] = (char, pen), ("", pen)
                    x += 2
                elif char != "字" and x < WIDTH:
                    row[x] = (char, pen)
                    x += 1
            x += 1
    return rows


def shown(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    return [
        [
            (
                cell.data,
                cell.bg,
                cell.reverse,
                *(() if cell.data == " " and not cell.reverse else (cell.fg, cell.bold)),
            )
            for cell in (screen.buffer[y][x] for x in range(WIDTH))
        ]
        for y in range(HEIGHT)
    ]


def painted(*frames: str) -> list[list[tuple[object, ...]]]:
    screen = RepeatingScreen(WIDTH, HEIGHT)
    stream = RepeatingStream(screen)
    stream.feed(b"\r\n".join([b"x" * WIDTH] * HEIGHT) + b"\x1b[H\x1b[2J")  # pyte erases cells alone that were written
    for frame in frames:
        stream.feed(frame.encode())
    return shown(screen)


@settings(max_examples=60, deadline=None)
@given(screens(), screens(), st.builds(Abilities, *[st.booleans()] * 3), st.booleans())
def test_a_difference_leads_to_the_same_screen_as_a_whole_one(
    old: list[Row], new: list[Row], can: Abilities, in_order: bool
) -> None:
    empty = blank(WIDTH, HEIGHT)
    step = painted(difference(empty, old, can, in_order=in_order), difference(old, new, can, in_order=in_order))
    assert step == painted(difference(empty, new, in_order=True))


@settings(max_examples=60, deadline=None)
@given(screens(), screens(), st.integers(0, HEIGHT - 1))
def test_rows_of_another_page_are_erased_or_overwritten_to_the_same_end(
    old: list[Row], new: list[Row], kept: int
) -> None:
    new = [*old[:kept], *new[kept:]]
    empty, can = blank(WIDTH, HEIGHT), Abilities(repeats=True)
    assert painted(difference(empty, old, can), difference(old, new, can)) == painted(difference(empty, new))


@pytest.mark.parametrize("width", range(1, 7))
def test_a_window_of_a_few_columns_is_sent(width: int) -> None:
    old, new = blank(width, 2), [[(str(x), PLAIN) for x in range(width)] for _ in range(2)]
    row = "".join(map(str, range(width)))
    for before in (old, [[("y", PLAIN)] * width] * 2):
        assert difference(before, new).count(row) == 2


def test_one_changed_figure_costs_a_movement_and_itself() -> None:
    old, new = blank(120, 40), blank(120, 40)
    for rows, text in ((old, "silent 48s"), (new, "silent 49s")):
        put(rows[0], 100, [Segment(text, Style.parse("#a8a8a8"))], ColorSystem.EIGHT_BIT)
    assert difference(old, new) == "\x1b[1;109H\x1b[38;5;248m9\x1b[m"
    assert difference(new, new) == ""


def test_one_changed_figure_looks_at_its_own_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet watch changes a figure or an age each second: the other rows are not made for the way by erasing."""
    seen: list[int] = []
    row = Sender.row
    monkeypatch.setattr(Sender, "row", lambda self, y, before, after: (seen.append(y), row(self, y, before, after)))
    old = [[(char, PLAIN) for char in f"row {y:2} of a full screen"] for y in range(40)]
    new = [list(cells) for cells in old]
    new[3][5] = ("9", PLAIN)
    assert difference(old, new) == "\x1b[4;6H9"
    assert seen == [3]


def test_blanks_are_erased_and_not_written() -> None:
    old, new = blank(120, 2), blank(120, 2)
    put(old[0], 0, [Segment("x" * 120)], None)
    put(new[0], 0, [Segment("x")], None)
    assert difference(old, new) == "\x1b[1;2H\x1b[K"


def test_a_rule_is_one_character_and_how_often() -> None:
    new = blank(120, 1)
    put(new[0], 0, [Segment("─" * 80)], None)
    assert difference(blank(120, 1), new, Abilities(repeats=True)) == "\x1b[H─\x1b[79b"
    assert difference(blank(120, 1), new) == "\x1b[H" + "─" * 80


def test_in_tmux_3_3_which_repeats_ascii_alone_a_rule_is_written_and_letters_are_repeated() -> None:
    new, can = blank(120, 1), Abilities(erases_in_colour=False, repeats_ascii=True)
    put(new[0], 0, [Segment("─" * 10 + "=" * 60)], None)
    assert difference(blank(120, 1), new, can) == "\x1b[H" + "─" * 10 + "=\x1b[59b"


@pytest.mark.parametrize(
    ("term", "column", "expected"),
    [
        ("xterm-256color", 28, Abilities(repeats=True, repeats_ascii=True)),
        ("xterm-256color", 2, Abilities()),
        ("xterm-256color", 5, Abilities()),  # none that is known
        ("tmux-256color", 28, Abilities(True, repeats=True, repeats_ascii=True)),
        ("tmux-256color", 19, Abilities(True, repeats_ascii=True)),
        ("screen-256color", 2, Abilities()),
    ],
)
def test_what_a_terminal_can_do_is_read_from_its_answer(
    monkeypatch: pytest.MonkeyPatch, term: str, column: int, expected: Abilities
) -> None:
    monkeypatch.setenv("TERM", term)
    assert measured(Abilities(), (column, 0)) == expected


@pytest.mark.parametrize(("repeats", "column"), [("all", 28), ("ascii", 19), ("none", 2)])
def test_a_terminal_answers_the_question_what_it_can_do(repeats: str, column: int) -> None:
    screen = RepeatingScreen(80, 2, repeats)
    RepeatingStream(screen).feed(QUESTION.encode())
    assert screen.answers == [f"\x1b[1;{column + 1}R"]


def test_two_erasures_beside_each_other_in_different_backgrounds() -> None:
    old, new = blank(60, 1), blank(60, 1)
    put(old[0], 0, [Segment("x" * 60)], None)
    put(
        new[0],
        0,
        [Segment(" " * 20, Style.parse("on #303030")), Segment(" " * 20), Segment("y" * 20)],
        ColorSystem.EIGHT_BIT,
    )
    can = Abilities(erases_in_colour=True)
    frames = [difference(blank(60, 1), old, can), difference(old, new, can, in_order=True)]
    screen = RepeatingScreen(60, 1)
    RepeatingStream(screen).feed("".join(frames).encode())
    assert [screen.buffer[0][x].bg for x in (0, 19, 20, 39)] == ["303030", "303030", "default", "default"]
    assert screen.display == [" " * 40 + "y" * 20]


def test_another_page_is_sent_after_erasing_and_a_row_that_is_the_same_stays() -> None:
    old, new = blank(120, 20), blank(120, 20)
    for y in range(20):
        put(old[y], 0, [Segment("ab cd " * 20 if y else "the same")], None)
        put(new[y], 0, [Segment("xy" if y else "the same")], None)
    assert difference(old, new) == "\x1b[2H\x1b[J" + "\r\n".join(["xy"] * 19)


def test_on_a_thin_link_greys_are_faint_and_colours_of_the_first_sixteen() -> None:
    assert frugal(Pen("38;5;248")) == Pen("", "", frozenset("2"))
    assert frugal(Pen("38;5;214", "", frozenset("1"))) == Pen("93")
    assert frugal(Pen("38;5;214", "", frozenset("17"))) == Pen("93", "", frozenset("17"))
    assert frugal(PLAIN) == PLAIN
    assert frugal(Pen("31")) == Pen("31")
    assert frugal(Pen("38;2;255;121;198")) == frugal(Pen("38;5;212")) == Pen("95")
    assert frugal(Pen("38;5;231")) == PLAIN  # white would not be seen on white


def test_on_a_thin_link_a_themes_own_text_and_background_are_the_terminals() -> None:
    page = Pen("38;2;248;248;242", "48;2;40;42;54")
    assert frugal(page, page) == PLAIN
    assert frugal(Pen("38;2;168;169;170", page.back), page) == Pen("", "", frozenset("2"))
    assert frugal(Pen("38;2;168;169;170", page.back), page, True) == PLAIN
    assert frugal(Pen("38;2;255;121;198", page.back, frozenset("17")), page) == Pen("95", "", frozenset("17"))
    chosen = Pen("38;2;168;169;170", "48;2;68;71;90")
    assert frugal(chosen, page) == chosen  # a text and its background belong together


@pytest.mark.parametrize(
    ("theme", "is_light", "page"),
    [
        ("dracula", False, Pen("38;5;231", "48;5;236")),
        ("dracula", True, None),
        ("textual-light", True, Pen("38;5;234", "48;5;253")),
        ("textual-light", False, None),
        ("ansi-dark", True, PLAIN),
    ],
)
def test_a_dark_theme_keeps_its_background_on_a_light_terminal(theme: str, is_light: bool, page: Pen | None) -> None:
    known = BUILTIN_THEMES[theme]
    assert page_of(known, terminal_is_light=is_light, system=ColorSystem.EIGHT_BIT) == page
    rows = [[("a", Pen("38;5;248", "48;5;236"))]]
    assert page is not None or frugal_rows(rows, Savings(page)) == rows


def test_a_link_is_thin_when_two_frames_came_slowly_through_and_not_when_the_way_is_long() -> None:
    far, thin = Link(), Link()
    for t in range(0, 60, 20):
        for link, took in ((far, 0.6), (thin, 0.3)):
            link.sent(t, 50)
            link.answered(t + took)
        far.sent(t + 10, 6000)
        far.answered(t + 10 + 0.65)
        thin.sent(t + 10, 2000)
        thin.answered(t + 10 + 1.3)
    assert thin.is_thin
    assert not far.is_thin


def carry(link: Link, t: float, size: int, rate: float) -> None:
    """A frame of ``size`` bytes goes out at ``t`` on a way of 50 ms and so many bytes a second, and is answered."""
    link.sent(t, size)
    link.answered(t + 0.05 + size / rate)


def a_thin_link() -> Link:
    """One whose machine was busy while its first frames went out."""
    link = Link()
    for t, size in ((0, 50), (1, 3000), (2, 3000)):
        carry(link, t, size, 5000)
    assert link.is_thin
    for t in range(3, 10):
        carry(link, t, 50, 50_000)
    return link


def test_a_link_that_was_thin_while_the_machine_was_busy_is_quick_again_after_two_quick_frames() -> None:
    link = a_thin_link()
    assert link.words == "slow link: 5.1 KB/s"
    carry(link, 10, 3000, 50_000)
    assert link.is_thin
    carry(link, 11, 3000, 50_000)
    assert not link.is_thin and link.words == ""


def test_a_thin_link_that_takes_some_hundred_bytes_at_once_stays_thin() -> None:
    link = a_thin_link()
    for t in range(10, 40):
        carry(link, t, 600, 1_000_000)
    assert link.is_thin


def test_a_thin_link_stays_thin_while_its_rate_is_not_twice_that_of_one() -> None:
    link = a_thin_link()
    for t in range(10, 40):
        carry(link, t, 3000, 20_000 if t % 2 else 100_000)
    assert link.is_thin


def test_the_rate_of_a_quiet_thin_link_is_taken_again_now_and_then_and_ever_more_seldom() -> None:
    link = a_thin_link()
    rates_t = []
    for t in range(20, 400):
        size = 50 + link.lacks(t, 50)
        if size > 50:
            rates_t.append(t)
        carry(link, t, size, 5000)
    assert 3 <= len(rates_t) <= 8
    assert rates_t[-1] - rates_t[-2] >= 2 * (rates_t[1] - rates_t[0])
    assert Link().lacks(1000, 50) == 0


def test_a_large_frame_rests_as_long_as_a_thin_link_carries_it_and_a_key_ends_the_rest() -> None:
    link = Link()
    carry(link, 0.0, 4000, 1_000_000)
    assert link.wait_s(0.1, is_urgent=False) == pytest.approx(0.15)
    assert link.wait_s(0.1, is_urgent=True) == 0
    carry(link, 1.0, 300, 1_000_000)
    assert link.wait_s(1.06, is_urgent=False) == 0


def test_a_colour_of_the_palette_is_sent_by_its_number() -> None:
    assert pen_of(Style.parse("#5fafff"), ColorSystem.TRUECOLOR).fore == "38;5;75"
    assert pen_of(Style.parse("#123456"), ColorSystem.TRUECOLOR).fore == "38;2;18;52;86"
    assert pen_of(Style.parse("#ff0000"), ColorSystem.STANDARD).fore in ("31", "91")
    assert pen_of(Style.parse("bold #ff0000"), None) == Pen("", "", frozenset("1"))


@pytest.mark.parametrize("new", PENS)
@pytest.mark.parametrize("old", PENS)
def test_every_change_of_a_pen_ends_in_the_new_one(old: Pen, new: Pen) -> None:
    direct = painted(change(PLAIN, new) + "x")
    assert painted(change(PLAIN, old) + change(old, new) + "x") == direct


def test_one_frame_is_on_its_way_and_the_next_waits_for_the_answer() -> None:
    link = Link()
    link.sent(0.0, 50)
    assert link.wait_s(0.1, is_urgent=True) > 0
    link.answered(0.2)
    assert link.wait_s(0.2, is_urgent=False) == 0
    assert link.words == ""


def test_a_slow_link_is_measured_said_and_sent_to_less_often_but_not_for_keys() -> None:
    link = Link()
    link.sent(0.0, 50)
    link.answered(1.5)
    assert link.words == "slow link: 1.5 s"
    assert link.wait_s(1.5, is_urgent=False) == 1.5
    assert link.wait_s(1.5, is_urgent=True) == 0


def test_a_terminal_that_never_answers_is_asked_no_more() -> None:
    link = Link()
    link.sent(0.0, 50)
    assert link.wait_s(SILENT_S + 0.1, is_urgent=False) == 0
    assert link.question == ""
    link.sent(2.0, 50)
    assert link.wait_s(2.0, is_urgent=False) == 0
    link.answered(2.1)  # it is only slow
    assert link.question and link.words == "slow link: 2.1 s"


def test_a_lost_answer_is_not_waited_for_longer_than_the_limit() -> None:
    link = Link()
    link.sent(0.0, 50)
    link.answered(0.1)
    link.sent(1.0, 50)
    assert link.wait_s(1.0 + LOST_S - 1, is_urgent=True) > 0
    assert link.wait_s(1.0 + LOST_S + 1, is_urgent=True) == 0
    assert link.question


def test_a_light_terminal_is_known_by_its_answer_or_by_the_environment() -> None:
    assert is_light(b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c") is True
    assert is_light(b"\x1b]11;rgb:fd/f6/e3\x07") is True
    assert is_light(b"\x1b]11;rgb:1212/1212/1212\x1b\\") is False
    assert is_light(b"\x1b[?62c") is None
    assert [light_by_environment(value) for value in ("0;15", "15;0", "15;default;0", "", "x")] == [
        True,
        False,
        False,
        None,
        None,
    ]


def test_a_blank_between_two_words_of_one_look_changes_no_pen() -> None:
    old, new = blank(40, 1), blank(40, 1)
    put(new[0], 0, [Segment("one two three", Style.parse("bold"))], None)
    assert difference(old, new) == "\x1b[H\x1b[1mone two three\x1b[m"


@settings(deadline=None)
@given(screens(), screens())
def test_the_whole_screen_is_left_out_only_where_it_is_longer(old: list[Row], new: list[Row]) -> None:
    """The quick look never keeps the way of erasing from being taken where that is the shorter one."""
    for can in (Abilities(), Abilities(repeats=True)):
        with mock.patch.object(output_difference, "_fits", lambda rows, most: True):
            tried = difference(old, new, can)
        assert difference(old, new, can) == tried
