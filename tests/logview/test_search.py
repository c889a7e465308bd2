"""Patterns, and the threads that look for them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon.analyse.log.blocks import pieces
from sgmon.analyse.log.index import LogIndex
from sgmon.analyse.log.lines import describe as described
from sgmon.analyse.log.search import kind_hint
from sgmon.servers.sglang.log import RULES
from tests.logview.fakes import dated, describe, index_of, reading
from widgets.log_filter import LogFilter, _needed, parse
from widgets.log_rows import is_error


@pytest.mark.parametrize(
    ("typed", "is_regex", "hits", "misses"),
    [
        ("kv cache", False, "KV Cache is allocated", "cache kv"),
        ("KV", False, "KV Cache", "kv cache"),
        ("[TP3]", False, "at [TP3] now", "T"),
        ("f(x)", False, "call f(x)", "fx"),
        ("0.5.23", False, "v0.5.23", "0x5y23"),
        ("TP[0-3]+", True, "TP2", "TP7"),
        ("load.*end", True, "Load weight end", "end load"),
        ("end$", True, "the end", "end of"),
        ("a|b", True, "xb", "xc"),
        (r"\d+ GB", True, "has 12 GB", "GB"),
        ("/[ab]c/", True, "bc", "[ab]c"),
        ("*broken(", False, "a *broken( b", "broken"),
        ("!noise", False, "words", "noise"),
    ],
)
def test_patterns(typed: str, is_regex: bool, hits: str, misses: str) -> None:
    pattern = parse(typed)
    assert pattern.is_regex is is_regex
    assert pattern.hits(describe(1, hits))
    assert not pattern.hits(describe(1, misses))


def test_a_hint_never_hides_a_hit() -> None:
    texts = ["KV Cache", "Load weight end", "größe", "TP2", "[2026-11-29 16:05:24 TP1] words"]
    for typed in ("kv", "GRÖSSE", "größe", "load.*end", "^Load", "end$", "!kv", "TP[0-3]+", "tp1", "\\bwords"):
        pattern = parse(typed)
        hint = pattern.hint()
        for text in texts:
            if hint is not None and pattern.hits(describe(1, text)):
                assert hint("\n".join(texts)) and hint(text)
    assert LogFilter("TP1", parse("words")).passes(describe(1, texts[4]))


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        (r"new-token: 9[5-6]\b", ("new-token: 9",)),
        ("load.*end", ("load",)),
        ("abcd*x", ("abc",)),
        ("ab{2,3}cdef", ("cdef",)),
        ("abcd{0,1}", ("abc",)),
        ("one|three", ("one", "three")),
        (r"one|\d", ()),
        ("(?:optional)?x", ()),
        (r"\bword", ("word",)),
        ("a+b", ()),
        (r"\d+", ()),
        ("abc+", ("abc",)),
    ],
)
def test_the_text_that_a_match_must_hold(pattern: str, needed: tuple[str, ...]) -> None:
    assert _needed(pattern) == needed


@given(st.text("abc.*+?[]{}\\1,|", max_size=9), st.text("abc1,", max_size=12))
@settings(max_examples=500, deadline=None)
def test_a_hint_lets_every_match_through(pattern: str, text: str) -> None:
    found = parse(f"/{pattern}/" if pattern else "a")
    hint = found.hint()
    if hint is not None and found.hits(describe(1, text)):
        assert hint(text) and hint(f"before\n{text}\nafter")


@given(
    st.sampled_from(
        ["token", "!token", "^.20", "end$", "!end$", "[a-z]+=", r"=\*+", "api_key=x", "!api", r"\W{5}", "x|end"]
    ),
    st.lists(
        st.sampled_from(
            ["api_key=xyz ", "end", "\r", "[2026-11-29 16:05:24 TP1] ", "\x1b[1m", "a" * 5000, "token ", "\x00", "x"]
        ),
        max_size=5,
    ).map("".join),
)
@settings(max_examples=500, deadline=None)
def test_what_a_hint_says_of_a_line_holds_for_each_of_its_pieces(typed: str, text: str) -> None:

    found = parse(typed)
    if any(found.hits(described(1, piece, RULES)) for piece in pieces(text)):
        assert found.hint()(text)


def test_an_expression_gets_no_long_text() -> None:
    found = parse(r"/(\w+\s?)+:$/")
    assert found.hint()("a" * 1_000_000 + "\n" + "b " * 100_000)  # at once: looked at line by line only
    assert found.hint()("a" * 1_000_000)


def test_kind_hints_let_errors_through() -> None:

    hint = kind_hint("error", RULES)
    assert hint is not None
    for text in (
        "torch.OutOfMemoryError: CUDA out of memory.",
        "[2026-11-29 16:05:24 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/x.py", line 3, in f',
        "KeyboardInterrupt",
        "[rank0]:[E1129 16:05:53.542464636 ProcessGroupNCCL.cpp:1575] watchdog",
    ):
        if is_error(described(1, text, RULES)):
            assert hint(text), text


def log(path: Path, lines: int, *, hit_at: tuple[int, ...]) -> LogIndex:
    with path.open("w") as out:
        for n in range(lines):
            out.write(dated(n % 1000, f"ValueError: number {n}" if n in hit_at else f"words {n} " + "w" * 80, "TP0"))
    return index_of(path)


def ask(index: LogIndex, offset: int, forward: bool) -> int | None:
    answers: list[int | None] = []
    done = threading.Event()

    def take(found: int | None) -> None:
        answers.append(found)
        done.set()

    index.search(is_error).start(offset, forward, max(0, offset) // index.block_bytes, take)
    assert done.wait(20)
    return answers[0]


def test_the_next_error_and_the_one_before(tmp_path: Path) -> None:
    index = log(tmp_path / "log", 4000, hit_at=(0, 1500, 3999))
    first = ask(index, -1, True)
    assert first == 0
    second = ask(index, 0, True)
    assert second is not None
    found = [line for at, line in index.block(second // index.block_bytes) if at == second]
    assert "number 1500" in found[0].text
    third = ask(index, second, True)
    assert ask(index, third or 0, True) is None
    assert ask(index, third or 0, False) == second
    assert ask(index, 0, False) is None


def test_a_survey_knows_which_blocks_matter(tmp_path: Path) -> None:
    index = log(tmp_path / "log", 6000, hit_at=(3000,))
    survey = index.survey(is_error, kind_hint("error", RULES))
    done = threading.Event()
    survey.start(lambda: done.set() if survey.done_share == 1 else None)
    assert done.wait(20)
    states = [survey.state(block) for block in range(index.blocks - 2)]
    assert states.count(2) == 1 and states.count(1) == len(states) - 1
    with (tmp_path / "log").open("a") as out:
        out.write(dated(1, "ValueError: late") + dated(1, "w" * 200) * 500)
    index.follow(reading(tmp_path / "log"))
    done.clear()
    survey.grow()
    assert done.wait(20)
    assert [survey.state(block) for block in range(index.blocks - 2)].count(2) == 2
    survey.cancel()


def test_another_file_ends_a_search(tmp_path: Path) -> None:
    index = log(tmp_path / "log", 3000, hit_at=())
    survey = index.survey(is_error)
    (tmp_path / "log").write_text("short\n")
    index.follow(reading(tmp_path / "log", "truncated"))
    survey.start(lambda: None)
    survey.grow()
    assert survey.state(0) == 0
