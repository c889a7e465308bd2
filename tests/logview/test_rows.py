"""Folding: equal lines of many ranks, bars, noise, silence."""

from __future__ import annotations

from datetime import datetime

from sgmon.analyse.log.blocks import pieces
from sgmon.analyse.log.envelope import Envelope
from sgmon.analyse.log.lines import describe as describe_by
from sgmon.analyse.log.lines import describe_in
from sgmon.servers import registry
from tests.logview.fakes import dated, describe
from widgets.line import plain, width_of
from widgets.log_paint import RowFormat, paint_row, suffix
from widgets.log_rows import Folder, Folding, Row
from widgets.log_window import Placed, chop

EIGHT = tuple(f"TP{n}" for n in range(8))


def rows_of(text: str, folding: Folding | None = None) -> list[Row]:
    entries, offset = [], 0
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        entries += [(offset, describe(number, piece)) for piece in pieces(line)]
        offset += len(line.encode()) + 1
    return Folder(folding or Folding()).fold(entries)


def shown(row: Row, expected: tuple[str, ...] = EIGHT, width: int = 80) -> str:
    row_format = RowFormat(width=width, expected=expected, rank_width=6)
    return plain(paint_row(Placed(row, 0, row.message), row_format)).rstrip()


def test_equal_lines_of_eight_ranks_are_one_row() -> None:
    text = "".join(dated(n // 4, "Load weight begin. avail mem=138.31 GB", f"TP{n}") for n in range(8))
    (row,) = rows_of(text)
    assert row.count == 8 and not row.similar
    assert "×8" in shown(row) and "TP0-7" in shown(row) and "not" not in shown(row)


def test_who_did_not_print_it() -> None:
    text = "".join(dated(0, "Load weight begin.", f"TP{n}") for n in (0, 1, 2, 3, 4, 6, 7))
    (row,) = rows_of(text)
    assert shown(row).endswith("×7, not TP5")


def test_who_printed_it_later() -> None:
    text = "".join(dated(0, "Load weight begin.", f"TP{n}") for n in (0, 1, 2, 3, 4, 6, 7))
    lead, gap, late = rows_of(text + dated(240, "Load weight begin.", "TP5"))
    assert shown(lead).endswith("×7, TP5 later")
    assert gap.kind == "gap" and "4m00s silence" in shown(gap)
    assert late.ranks == ("TP5",)


def test_a_slow_trickle_is_one_row_and_two_late_ranks_are_both_named() -> None:
    (row,) = rows_of("".join(dated(4 * n, "Load weight begin.", f"TP{n}") for n in range(8)))
    assert row.count == 8
    text = "".join(dated(0 if n < 6 else 10, "Load weight begin.", f"TP{n}") for n in range(8))
    first, second = rows_of(text)
    assert shown(first).endswith("×6, TP6-7 later") and second.ranks == ("TP6", "TP7")


def test_interleaved_ranks_fold_line_by_line() -> None:
    text = "".join(
        dated(0, words, f"TP{n}") for n in (1, 0) for words in ("KV Cache is allocated", "Memory pool end")
    )
    assert [(row.message, row.count) for row in rows_of(text)] == [
        ("KV Cache is allocated", 2),
        ("Memory pool end", 2),
    ]


def test_milestones_fold_though_their_numbers_differ_and_say_so() -> None:
    text = dated(0, "Load weight end. elapsed=14.29 s", "TP0") + dated(1, "Load weight end. elapsed=99.30 s", "TP1")
    (row,) = rows_of(text)
    assert row.similar and "≈2" in shown(row, ("TP0", "TP1"))
    other = dated(0, "step 1", "TP0") + dated(0, "step 2", "TP1")
    assert len(rows_of(other)) == 2


def test_the_same_rank_again_is_a_new_row() -> None:
    text = dated(0, "retry", "TP0") + dated(0, "retry", "TP1") + dated(1, "retry", "TP0")
    assert [row.count for row in rows_of(text)] == [2, 1]


def test_lines_of_few_ranks_name_them_and_blame_nobody() -> None:
    text = dated(0, "tokenizer ready", "TP0") + dated(0, "tokenizer ready", "TP4")
    (row,) = rows_of(text)
    assert suffix(row, EIGHT) == ((" ×2", "strong"),)
    assert "TP0,4" in shown(row)


def test_one_live_row_per_bar() -> None:
    text = (
        "\r  0%|  | 0/36 [00:00<?, ?it/s]"
        + dated(0, "multimem all-gather disabled", "TP1")
        + "\rCapturing (bs=256):   3%|▎ | 1/36 [00:01]\rCapturing (bs=248):   6%|▎ | 2/36 [00:01]\n"
        + dated(1, "words between", "TP0")
        + "\rCapturing (bs=1): 100%|█| 36/36 [00:09]"
    )
    assert [row.message[:30] for row in rows_of(text)] == [
        "multimem all-gather disabled",
        "words between",
        "Capturing (bs=1): 100%|█| 36/3",
    ]


def test_a_second_load_is_a_second_bar() -> None:
    text = "\rLoad: 100%|█| 9/9 [00:09]\nwords\n\rLoad:  50%|█| 4/9 [00:09]"
    assert [row.line.kind for row in rows_of(text)] == ["bar", "", "bar"]


def test_silence_is_drawn_where_it_was() -> None:
    rows = rows_of(dated(0, "a") + dated(10, "b") + dated(262, "c"))
    assert [row.kind for row in rows] == ["line", "line", "gap", "line"]
    assert "4m12s silence" in shown(rows[2])


def test_a_gap_with_a_moving_bar_is_no_silence() -> None:
    rows = rows_of(dated(0, "a") + "\rLoad: 100%|█| 9/9 [00:09]\n" + dated(97, "b"))
    gap = next(row for row in rows if row.kind == "gap")
    assert "1m37s without a dated line" in shown(gap) and "silence" not in shown(gap)


def test_a_clock_that_steps_back_is_no_gap() -> None:
    assert all(row.kind == "line" for row in rows_of(dated(100, "a") + dated(0, "b") + dated(101, "c")))


def test_noise_is_counted_and_can_be_shown() -> None:
    text = dated(0, "a") + dated(0, "known noise") * 3 + dated(0, 'GET "x HTTP/1.1" 200') + dated(1, "b")
    rows = rows_of(text)
    assert [(row.kind, row.count) for row in rows] == [("line", 1), ("noise", 4), ("line", 1)]
    assert len(rows_of(text, Folding(noise_shown=True))) == 6


def test_every_line_when_asked() -> None:
    text = "".join(dated(0, "Load weight begin.", f"TP{n}") for n in range(8)) + dated(0, "known noise")
    assert len(rows_of(text, Folding(every_line=True))) == 9


def test_rows_are_never_wider_than_the_screen() -> None:
    text = dated(0, "Load weight 世界世界 " + "字" * 300, "TP0") + dated(
        0, "Load weight 世界世界 " + "字" * 300, "TP1"
    )
    (row,) = rows_of(text)
    for width in (30, 41, 80, 133):
        row_format = RowFormat(width=width, expected=("TP0", "TP1", "TP2"), rank_width=6)
        assert width_of(paint_row(Placed(row, 0, row.message), row_format, cursor=True)) <= width
        assert plain(paint_row(Placed(row, 0, row.message), row_format)).endswith("×2, not TP2")


def test_chop_loses_nothing() -> None:
    for text in ("", "short", "word " * 60, "字" * 50, "x" * 500):
        for width in (2, 9, 30):
            assert "".join(chop(text, width)) == text


TRACEBACK = (
    dated(0, "ValueError in the scheduler", "TP1")
    + "Traceback (most recent call last):\n"
    + "".join(f'  File "/site/sglang/f{n}.py", line {n}, in f{n}\n    call({n})\n' for n in range(20))
    + "ValueError: bad\n"
)


def of_sglang(text: str, folding: Folding | None = None) -> list[Row]:
    from functools import partial

    from sgmon.analyse.log.lines import describe as described
    from sgmon.servers.sglang.log import RULES

    real = partial(described, log=RULES)

    entries, offset = [], 0
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        entries.append((offset, real(number, line)))
        offset += len(line.encode()) + 1
    return Folder(folding or Folding()).fold(entries)


def test_a_long_traceback_shows_its_ends() -> None:
    rows = of_sglang(TRACEBACK)
    assert [row.kind for row in rows[1:]] == ["line", "frames", "line", "line", "line"]
    assert "38 lines of traceback (enter shows)" in shown(rows[2])
    assert rows[3].message.strip().startswith('File "/site/sglang/f19.py"')
    assert rows[4].message.strip() == "call(19)" and rows[4].line.kind == "traceback"
    assert rows[5].message == "ValueError: bad"


def test_an_opened_traceback_is_whole() -> None:
    hidden = of_sglang(TRACEBACK)[2]
    rows = of_sglang(TRACEBACK, Folding(opened=frozenset({hidden.offset})))
    assert len(rows) == 43 and all(row.kind == "line" for row in rows)


def test_a_line_of_vllm_shows_its_clock_and_its_words() -> None:
    """Each line begins with the name and pid of its writer, level, time and place; a banner has lines of blanks."""
    rules = registry.get("vllm").log
    head = "(Worker_TP1 pid=17) INFO 11-30 01:20:32 [gpu_worker.py:298] "
    near = datetime(2026, 11, 30, 2).timestamp()
    texts = [head + "Loading weights took 3.1 seconds", head]
    lines = [(number, describe_by(number, text, rules, near)) for number, text in enumerate(texts, 1)]
    rows = Folder(Folding()).fold(lines)
    assert [(row.clock, row.message) for row in rows] == [("01:20:32", "Loading weights took 3.1 seconds")]
    assert len(Folder(Folding(every_line=True)).fold(lines)) == 2


def test_a_wrapped_line_shows_its_words() -> None:
    """The wrapper's prefix goes as the server's own does."""
    text = "\n".join(
        f"pod-a server | [2026-01-29 13:12:3{n} TP0] Load weight begin. avail mem={n}.00 GB" for n in range(6)
    )
    envelope = Envelope(registry.get("sglang").log)
    while envelope.learn(text.split("\n")) is not None:
        pass
    lines = [(n, describe_in(n, line, envelope)) for n, line in enumerate(text.split("\n"), 1)]
    rows = Folder(Folding(every_line=True)).fold(lines)
    assert {row.message[:17] for row in rows} == {"Load weight begin"} and rows[0].clock == "13:12:30"
