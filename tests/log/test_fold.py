from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon.analyse.log.fold import TAIL, LogFold
from sgmon.analyse.log.gaps import Gaps
from sgmon.analyse.log.shapes import shape_of
from sgmon.model import LogReading, LogState
from sgmon.servers.sglang.log import RULES
from tests.log.loading import case_names, case_text, fold, recording

MIXED = "\n".join(case_text(name) for name in case_names())
REAL = [recording(name) for name in ("gpu/tp2_stop1", "cpu/tp2-kill9-load", "cpu/port-in-use-long", "gpu/oom_frac")]


def comparable(state: LogState) -> LogState:
    return msgspec.structs.replace(state, path="")


@st.composite
def cuts(draw: st.DrawFn, length: int) -> list[int]:
    return sorted(draw(st.lists(st.integers(0, length), max_size=40)))


@pytest.mark.parametrize("text", REAL, ids=["tp2_stop1", "kill9", "port", "oom"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_chunking_folds_to_the_same(text: str, data: st.DataObject) -> None:
    assert fold(text, data.draw(cuts(len(text)))) == fold(text)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_chunking_of_all_cases_in_one_file(data: st.DataObject) -> None:
    assert fold(MIXED, data.draw(cuts(len(MIXED)))) == fold(MIXED)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_chunking_of_small_nasty_texts(data: st.DataObject) -> None:
    pieces = st.sampled_from(
        [
            "\n", "\r", "\r\n", "\0\0\0", "Traceback (most recent call last):\n", '  File "x.py", line 1, in f\n',
            "ValueError: no\n", "[2026-01-29 13:12:36 TP1] Load weight begin. avail mem=1.0 GB", " ",
            "Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<00:00,  6.52it/s]",
            "Loading safetensors checkpoint shards: 100% Completed | 3/3 [00:00<00:00,  6.52it/s]",
            "[2026-01-29 13:12:39 TP0] Scheduler hit an exception: Traceback (most recent call last):\n",
            "OpenAIServingResponses init traceback:\n", "nanobind: leaked 4 instances!", "x" * 300, "[E",
            "[2026-01-29 13:14:30] The server is fired up and ready to roll!\n", "\x1b[31m", "server_args={'tp_size': 2}\n",
            '[2026-01-29 13:14:25] INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 200 OK\n',
        ]
    )  # fmt: skip
    text = "".join(data.draw(st.lists(pieces, max_size=25)))
    # When something was written depends on when it was read: the first character of a line that turns out to be the
    # echo of a probe counts, the whole line does not.
    states = [
        msgspec.structs.replace(state, last_activity_t=None)
        for state in (fold(text, data.draw(cuts(len(text)))), fold(text))
    ]
    assert states[0] == states[1]


def test_a_carriage_return_that_begins_a_line_ends_nothing() -> None:
    """The exception's own line begins with a carriage return, and the reading ends right behind it."""
    text = (
        "[2026-01-29 13:12:39 TP0] Scheduler hit an exception: Traceback (most recent call last):\n\rValueError: no\n"
    )
    for at in range(1, len(text)):
        assert fold(text, [at]).error == fold(text).error, at


def looked_at(text: str) -> LogState:
    """Folded one character at a time, with a look after each."""
    made = LogFold()
    for character in text:
        made.feed(LogReading("server.log", text=character), 1.0)
        made.state()
    return made.state()


def test_a_look_in_the_middle_of_a_line_changes_nothing() -> None:
    """What the unfinished line says counts for that look alone: its advice was kept as it stood then."""
    text = (
        "[2026-01-29 13:12:45 TP7] Piecewise CUDA Graph failed with error: 'X' object has no attribute 'y'\n"
        "To work around this error, add --disable-piecewise-cuda-graph to your launch command.\n"
    )
    error = looked_at(text).error
    assert error == fold(text).error
    assert error is not None and error.advice.endswith("to your launch command.")


def test_a_look_in_the_middle_of_a_traceback_adds_no_frame() -> None:
    """Frames whose name was cut were kept, until there was no place for the last one, where it failed."""
    frames = "".join(f'  File "/s/loader.py", line {n}, in load_the_weights_of_layer_{n}\n' for n in range(12))
    text = (
        "[2026-01-29 13:12:39 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        f"{frames}ValueError: no\n"
    )
    error = looked_at(text).error
    assert error == fold(text).error
    assert error is not None and error.place == "load_the_weights_of_layer_11 (loader.py:11)"


def test_one_character_at_a_time() -> None:
    text = case_text("sgl-17402") + case_text("sgl-5416")
    assert fold(text, list(range(len(text)))) == fold(text)


def test_the_newest_bar_is_read_before_it_ends() -> None:
    state = fold("Loading safetensors checkpoint shards:   0% Completed | 0/9 [00:00<?, ?it/s]\r"
                 "Loading safetensors checkpoint shards:  11% Completed | 1/9 [00:01<00:09,  1.18s/it]")  # fmt: skip
    assert [(bar.name, bar.done, bar.total, bar.line) for bar in state.bars] == [("weights_progress", 1, 9, 1)]
    assert state.lines == 1


def test_when_a_bar_moved_is_when_it_was_seen_first() -> None:
    made = LogFold()
    made.feed(LogReading("l", text="Loading safetensors checkpoint shards:  11% Completed | 1/9 [00:01<00:09]"), 10.0)
    made.feed(
        LogReading("l", text="\rLoading safetensors checkpoint shards:  11% Completed | 1/9 [00:02<00:09]"), 20.0
    )
    assert [bar.moved_t for bar in made.state().bars] == [10.0]
    made.feed(
        LogReading("l", text="\rLoading safetensors checkpoint shards:  22% Completed | 2/9 [00:02<00:09]"), 30.0
    )
    assert [bar.moved_t for bar in made.state().bars] == [30.0]


def test_the_newest_of_many_frames_in_one_line_counts() -> None:
    """More of them than are kept of a line without an end."""
    frames = [f"\r{done // 9:3}% Completed | {done}/900 [00:01<00:09,  1.18s/it]{' ' * 50}" for done in range(1, 901)]
    assert len("".join(frames)) > TAIL
    made = LogFold()
    made.feed(LogReading("l", text="[2026-01-29 13:13:07 TP0] Load weight begin. avail mem=9.0 GB\n"), 0.0)
    for t in range(9):
        made.feed(LogReading("l", text="".join(frames[100 * t : 100 * (t + 1)])), float(t))
    assert [(one.done, one.moved_t) for one in made.state().bars] == [(900, 8.0)]


def test_bars_and_other_ranks_on_one_line() -> None:
    state = fold(
        "[2026-01-29 13:13:07 TP0] Load weight begin. avail mem=9.0 GB\n"
        "Multi-thread loading shards:  40% Completed | 2/5 [00:03<00:04]\rMulti-thread loading shards:  60% Completed"
        " | 3/5 [00:03<00:04][2026-01-29 13:13:20 TP1] Load weight end. elapsed=1.0 s, type=X, avail mem=2.0 GB\n"
    )
    assert {rank.rank: (rank.milestone, rank.line) for rank in state.ranks} == {
        "TP0": ("weights_progress", 2),
        "TP1": ("load_end", 2),
    }
    assert state.bars[0].done == 3
    assert state.last_t == state.first_t + 13  # type: ignore[operator]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_endings(ending: str) -> None:
    text = case_text("sgl-5416").replace("\n", ending)
    state = fold(text)
    assert (state.error.kind, state.error.line) == ("memory_unbalanced", 14)  # type: ignore[union-attr]
    assert state.lines == 14


def test_nul_holes_and_long_lines() -> None:
    hole = "\0" * 5_000
    text = hole + "[2026-01-29 13:13:05 TP0] Init parallel begin.\n" + "x" * 1_000_000 + "\n" + hole + "y" * 1_000_000
    state = fold(text)
    assert state.last_milestone is not None
    assert (state.last_milestone.name, state.last_milestone.line) == ("dist_init_begin", 1)
    assert state.lines == 3
    assert state.last_line is not None
    assert len(state.last_line.text) < 10_000


def test_truncation_starts_over_and_rotation_goes_on() -> None:
    made = LogFold()
    made.feed(LogReading("l", text=recording("cpu/tp1-tiny")), 1.0)
    made.feed(LogReading("l", text="[2026-11-29 15:30:00] hello\n", change="rotated"), 2.0)
    assert made.state().ready_line == 54
    assert made.state().lines == 1
    made.feed(LogReading("l", text="[2026-11-29 15:31:00] Init parallel begin.\n", change="truncated"), 3.0)
    assert made.state().outcome == "unfinished"
    assert made.state().lines == 1


def test_a_second_start_in_the_same_file() -> None:
    state = fold(recording("cpu/tp2-kill9-load") + recording("cpu/tp1-tiny"))
    assert (state.outcome, state.runs, state.error) == ("ready", 2, None)
    assert state.run_line > 75
    assert state.first_t is not None and state.last_t is not None
    assert state.last_t - state.first_t < 120  # of the second start alone


def test_echoes_of_probes_do_not_make_a_silent_log_young() -> None:
    """The first reading of a log whose file is young because of the looks of others (or of an earlier one of ours)."""
    made = LogFold()
    echo = '[2026-11-29 15:04:{:02d}] INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 503 Service Unavailable\n'
    text = "[2026-11-29 15:01:00] Load weight begin. avail mem=1.00 GB\n" + echo.format(0) + echo.format(10)
    made.feed(LogReading("l", text=text, age_s=2.0), 300.0)
    assert made.state().last_activity_t == 300.0 - 2.0 - 190.0


def test_our_own_probe_is_no_activity() -> None:
    made = LogFold()
    made.feed(LogReading("l", text="[2026-11-29 15:21:29] The server is fired up and ready to roll!\n"), 1.0)
    probe = (
        "[2026-11-29 15:21:29] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00\n"
        '[2026-11-29 15:21:30] INFO:     127.0.0.1:50326 - "GET /health HTTP/1.1" 200 OK\n'
        "[2026-11-29 15:21:35] Health check request received during shutdown. Returning 503.\n"
    )
    for at, half in enumerate((probe[:150], probe[150:])):
        made.feed(LogReading("l", text=half), 2.0 + at)
    assert (made.state().last_byte_t, made.state().last_activity_t) == (3.0, 1.0)
    made.feed(LogReading("l", text=probe + "[2026-11-29 15:21:36 TP0] Decode batch\n"), 9.0)
    assert made.state().last_activity_t == 9.0


def lines(*messages: str) -> str:
    return "".join(f"[2026-01-29 13:13:{at:02d}{message}\n" for at, message in enumerate(messages))


def test_capture_again_while_serving_is_no_start() -> None:
    text = lines(
        " TP0] Capture cuda graph begin. This can take up to several minutes.",
        " TP0] Capture cuda graph end. Time elapsed: 2.0 s",
        "] The server is fired up and ready to roll!",
    )
    again = "\rCapturing batches (bs=8 avail_mem=1.0 GB):  25%|##5       | 9/36 [00:05<00:10,  2.6it/s]"
    state = fold(text + again)
    assert (state.outcome, state.phase, state.bars) == ("ready", "serving", ())
    assert state.last_milestone is not None
    assert state.last_milestone.name == "ready"


def test_old_order_of_a_draft_model() -> None:
    names = fold(
        lines(
            " TP0] Init torch distributed begin.",
            " TP0] Init torch distributed ends. mem usage=1.0 GB",
            " TP0] Load weight begin. avail mem=1.0 GB",
            " TP0] Load weight end. type=X, avail mem=1.0 GB",
            " TP0] KV Cache is allocated. #tokens: 1, K size: 1.0 GB, V size: 1.0 GB",
            " TP0] Memory pool end. avail mem=1.0 GB",
            " TP0] Capture cuda graph begin. This can take up to several minutes.",
            " TP0] Capture cuda graph end. Time elapsed: 2.0 s",
            " TP0] Init torch distributed begin.",
            " TP0] Init torch distributed ends. mem usage=1.0 GB",
            " TP0] Load weight begin. avail mem=1.0 GB",
            " TP0] Load weight end. type=XNextN, avail mem=1.0 GB",
            " TP0] KV Cache is allocated. #tokens: 1, K size: 1.0 GB, V size: 1.0 GB",
            " TP0] Memory pool end. avail mem=1.0 GB",
            " TP0] Capture draft cuda graph begin. This can take up to several minutes.",
            " TP0] Capture draft cuda graph end. Time elapsed: 2.0 s",
        )
    ).milestones
    target = [
        *("dist_init_begin", "dist_init_end", "load_begin", "load_end", "kv_alloc", "memory_pool_end"),
        *("graph_begin", "graph_end"),
    ]
    assert [milestone.name for milestone in names] == [*target, *(f"draft_{name}" for name in target)]


def test_new_order_of_a_draft_model() -> None:
    names = fold(
        lines(
            " TP0] Init parallel begin.",
            " TP0] Init parallel ends. elapsed=1.0 s",
            " TP0] Memory baseline taken. mem usage=0.0 GB",
            " TP0] Load weight begin. avail mem=1.0 GB",
            " TP0] Load weight end. elapsed=1.0 s, type=X, avail mem=1.0 GB",
            " TP0] Memory baseline taken. mem usage=0.0 GB",
            " TP0] Load weight begin. avail mem=1.0 GB",
            " TP0] Load weight end. elapsed=1.0 s, type=XNextN, avail mem=1.0 GB",
            " TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1, KV size: 1.0 GB",
            " TP0] Memory pool end. avail mem=1.0 GB",
            " TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1, KV size: 1.0 GB",
            " TP0] Memory pool end. avail mem=1.0 GB",
            " TP0] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1",
            " TP0] Capture target decode CUDA graph end. bs=[1, 2], elapsed=1.0 s",
            " TP0] Capture draft decode CUDA graph begin. backend=full",
            " TP0] Capture draft decode CUDA graph end. elapsed=1.0 s",
        )
    ).milestones
    assert [milestone.name for milestone in names] == [
        *("dist_init_begin", "dist_init_end", "dist_init_end", "load_begin", "load_end"),
        *("draft_dist_init_end", "draft_load_begin", "draft_load_end", "kv_alloc", "memory_pool_end"),
        *(
            "draft_kv_alloc",
            "draft_memory_pool_end",
            "graph_begin",
            "graph_end",
            "draft_graph_begin",
            "draft_graph_end",
        ),
    ]


def test_weights_committed_and_pool_sized_after_capture() -> None:
    state = fold(
        lines(
            " TP0] Load weight begin. avail mem=1.0 GB",
            " TP0] Prepared capture-safe model in 4.21 s",
            " TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 1, KV size: 1.0 GB",
            " TP0] Memory pool end. avail mem=1.0 GB",
            " TP0] Capture target decode CUDA graph begin. backend=full",
            " TP0] Capture target decode CUDA graph end. elapsed=1.0 s",
            " TP0] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 5",
            " TP0] Load weight end. Committed real weights after CUDA graph capture in 33.10 s",
        )
    )
    assert [m.name for m in state.milestones][-2:] == ["memory_pool_end", "load_end"]
    assert state.phase == "scheduler_ready"


def test_stages_and_replicas_are_ranks_of_their_own() -> None:
    state = fold(
        lines(
            " PP0 TP0] Load weight begin. avail mem=1.0 GB",
            " PP1 TP0] Load weight begin. avail mem=1.0 GB",
            " PP1 TP0 EP0] Load weight end. type=X, avail mem=1.0 GB",
            " DP1 PP0 TP0] Init torch distributed begin.",
        )
    )
    assert {rank.rank: rank.milestone for rank in state.ranks} == {
        "PP0 TP0": "load_begin",
        "PP1 TP0": "load_end",
        "DP1 PP0 TP0": "dist_init_begin",
    }


def test_the_tail_of_a_skipped_beginning() -> None:
    text = recording("cpu/tp2-tiny")
    assert fold(text[random.Random(3).randrange(20_000, 25_000) :]).outcome == "ready"


def test_what_was_there_before_the_watch_is_old() -> None:
    fold = LogFold()
    fold.feed(
        LogReading(path="/l", text="[2026-11-29 10:00:00 TP0] Load weight begin. avail mem=1.0 GB\n", age_s=90.0), 2.0
    )
    state = fold.state()
    assert (state.last_byte_t, state.last_activity_t) == (-88.0, -88.0)
    assert state.milestones[-1].seen_t == -88.0
    fold.feed(LogReading(path="/l", text="x\n"), 5.0)
    assert fold.state().last_activity_t == 5.0


def test_the_first_request_of_the_warm_up_counts_and_those_in_the_middle_of_a_log_do_not() -> None:
    warm = lines(
        " TP0] Init torch distributed ends. mem usage=1.0 GB",
        " TP0] Load weight begin. avail mem=1.0 GB",
        "] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
        '] INFO:     127.0.0.1:5 - "GET /model_info HTTP/1.1" 200 OK',
        '] INFO:     127.0.0.1:5 - "GET /model_info HTTP/1.1" 200 OK',
        " TP0] Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0",
    )
    found = [(made.name, made.event, made.line) for made in fold(warm).milestones]
    assert found[-2:] == [("warmup_request", "begin", 4), ("warmup_request", "progress", 6)]
    middle = lines(
        " TP0] Prefill batch, #new-seq: 2, #new-token: 6, #cached-token: 0",
        " TP0] Prefill batch, #new-seq: 2, #new-token: 6, #cached-token: 0",
        '] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK',
    )
    assert [made.line for made in fold(middle).milestones] == [1]


def test_a_literal_with_digits_is_told_from_one_with_others() -> None:
    killed = "[2026-01-29 13:13:00] Subprocess scheduler_0 exited with code -9\n"
    other = killed.replace("-9", "-77")
    assert fold(killed).error is not None
    assert fold(other + killed).error == msgspec.structs.replace(fold(killed).error, line=2)  # type: ignore[type-var]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_silence_is_found_whatever_the_chunks_and_the_order_of_seconds(data: st.DataObject) -> None:
    when = st.sampled_from(["29 13:12:36", "29 13:12:37", "29 13:14:00", "30 13:14:00", "27 01:00:00", "99 99:99:99"])
    form = st.sampled_from(
        ["[2026-01-{} TP1] x\n", "[2026-01-{}] x\n", "2026-01-{} INFO x\n", "[2048] {}\n", "x{}\n"]
    )
    text = "".join(row.format(t) for row, t in data.draw(st.lists(st.tuples(form, when), max_size=25)))
    state, ends = fold(text), [at + 1 for at, char in enumerate(text) if char == "\n"]
    assert fold(text, ends) == state


STAMPS = (
    "2026-01-29 13:12:36",
    "2026-01-29 13:12:37",
    "2026-01-29 13:14:30",
    "2026-01-28 13:14:30",
    "2026-13-99 99:99:99",
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from([*(f"[{stamp}] word\n" for stamp in STAMPS), "\n", "[20\n", "word\n", "20\n"]), max_size=30
    )
)
def test_dates_that_are_counted_tell_what_each_line_tells(lines: list[str]) -> None:
    text = "".join(lines)
    counted, looked_at = Gaps(), Gaps()
    for gaps, shapes in ((counted, shape_of(text).split(b"\n")), (looked_at, ())):
        gaps.take(text, text.split("\n"), 1, RULES, None, shapes)
    assert counted == looked_at
