"""Limits of the reading of a log: the value at the limit, and the one beyond it."""

from __future__ import annotations

import pytest

from sgmon.analyse.log.candidates import snake
from sgmon.analyse.log.envelope import Envelope
from sgmon.analyse.log.fold import LogFold
from sgmon.analyse.log.index import LogIndex
from sgmon.analyse.log.json_lines import message, texts, value_at
from sgmon.analyse.log.newest_first import is_newest_first, oldest_first, renumbered
from sgmon.analyse.log.prefix import epoch, origin
from sgmon.analyse.log.stamps import stamp
from sgmon.analyse.log.summary import text as summary
from sgmon.model import (
    Bar,
    LogError,
    LogReading,
    LogState,
    Milestone,
    QuietGap,
    RankProgress,
)
from sgmon.model.log import LogPart, Unresolved
from sgmon.servers.diffusion.log import args_in
from sgmon.servers.sglang.log import RULES
from tests.log.loading import fold
from tests.logview.fakes import settle

AT = "[2026-01-29 13:12:45 TP0] "
FAILS = f"{AT}Failed to load the x library: Traceback (most recent call last):\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 924.00 MiB.\n"


def dated(*seconds: int) -> str:
    return "".join(f"2026-01-29 13:12:{second:02}.000 line {second}\n" for second in seconds)


@pytest.mark.parametrize(
    ("seconds", "back"),
    [
        ((3, 2, 1), True),
        ((2, 1), False),  # once is not enough
        ((3, 2, 2), False),
        ((3, 2, 2, 1), True),  # the same time is neither
        ((10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2), True),  # 9 back, 1 forward
        ((10, 9, 8, 7, 6, 5, 4, 3, 2, 3), False),  # 8 back
        ((1, 2, 3), False),
    ],
)
def test_how_often_the_time_must_go_back(seconds: tuple[int, ...], back: bool) -> None:
    assert is_newest_first(dated(*seconds)) is back


def test_only_the_first_lines_and_their_beginnings_tell_the_order() -> None:
    plain = "no time here\n"
    assert is_newest_first(plain * 397 + dated(3, 2, 1))
    assert not is_newest_first(plain * 398 + dated(3, 2, 1))
    near, far = ("x" * count for count in (200 - len("2026-01-29 13:12:03.000"), 200))
    assert is_newest_first("".join(near + line + "\n" for line in dated(3, 2, 1).splitlines()))
    assert not is_newest_first("".join(far + line + "\n" for line in dated(3, 2, 1).splitlines()))


def test_entries_of_several_lines_keep_their_order() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: no\n'
    text = dated(3) + trace + dated(2) + dated(1)
    ordered, numbers = oldest_first(text)
    assert ordered == dated(1) + dated(2) + dated(3) + trace
    assert numbers == [6, 5, 1, 2, 3, 4]
    upside_down = dated(3) + "\n".join(reversed(trace.splitlines())) + "\n" + dated(1)
    assert oldest_first(upside_down) == (dated(1) + trace + dated(3), [5, 4, 3, 2, 1])


def test_all_that_has_a_line_gets_its_number_in_the_file() -> None:
    made = Milestone("load_end", "end", "weights", 2)
    state = LogState(
        milestones=(made,),
        last_milestone=made,
        ranks=(RankProgress("TP0", "load_end", 2),),
        bars=(Bar("b", 1, 2, 3),),
        error=LogError("oom", 1, "x"),
        longest_gap=QuietGap(9.0, 2),
        engines=(LogPart("a", LogState(ready_line=3)),),
        ready_line=1,
        http_up_line=2,
        bind_error_line=3,
        dummy_health_line=1,
        unresolved=Unresolved("h", 1, "w", 2),
        sigterm_line=3,
        run_line=1,
    )
    found = renumbered(state, [30, 20, 10])
    assert found.last_milestone is not None and found.error is not None
    assert found.longest_gap is not None and found.unresolved is not None
    lines = (found.milestones[0].line, found.last_milestone.line, found.ranks[0].line, found.bars[0].line)
    assert lines == (20, 20, 20, 10)
    assert (found.error.line, found.longest_gap.after_line, found.unresolved.line) == (30, 20, 20)
    assert found.engines[0].state.ready_line == 10
    assert (found.ready_line, found.http_up_line, found.bind_error_line) == (30, 20, 10)
    assert (found.dummy_health_line, found.sigterm_line, found.run_line) == (30, 10, 30)
    assert renumbered(LogState(run_line=4), [30, 20, 10]).run_line == 4
    assert renumbered(LogState(), [30]).ready_line is None


@pytest.mark.parametrize(("between", "survived"), [(3, True), (4, False)])
def test_how_soon_the_server_must_say_that_it_goes_on(between: int, survived: bool) -> None:
    state = fold(FAILS + OOM + f"{AT}another line\n" * between + f"{AT}Falling back to the slow path\n")
    assert (state.survived is not None, state.error is None) == (survived, survived)


@pytest.mark.parametrize(("between", "near"), [(11, True), (12, False)])
def test_how_near_advice_must_be(between: int, near: bool) -> None:
    hit = f"{AT}Scheduler hit an exception: Traceback (most recent call last):\n"
    state = fold(hit + OOM + "\n" * between + "Please set --mem-fraction-static 0.7\n")
    assert state.error is not None and bool(state.error.advice) is near


def test_how_much_is_kept() -> None:
    hit = f"{AT}Scheduler hit an exception: Traceback (most recent call last):\n"
    error = fold(f"{hit}ValueError: {'x' * 5000}\nPlease set {'y' * 500}\n").error
    assert error is not None
    assert (len(error.text), len(error.advice)) == (1000, 300)
    many = fold("".join(f"{AT}Rank {n} scheduler died during initialization (exit code: -9).\n" for n in range(80)))
    assert (len(many.complaints), many.errors) == (64, 80)
    long = fold(f"{AT}Rank 1 scheduler died during initialization (exit code: -9). {'x' * 500}\n")
    assert len(long.complaints[0].text) == 200


def test_the_middle_of_many_milestones_is_counted() -> None:
    names = [Milestone(f"m{n}", "end", "weights", n + 1) for n in range(49)]
    rows = summary(LogState("sglang", lines=99, milestones=tuple(names[:48])), "f").splitlines()
    assert not any("more (--json has all)" in row for row in rows)
    rows = summary(LogState("sglang", lines=99, milestones=tuple(names)), "f").splitlines()
    assert "  ... 1 more (--json has all)" in rows
    assert any(row.endswith("  m23") for row in rows) and not any(row.endswith("  m24") for row in rows)


def test_texts_of_a_json_line_are_looked_for_four_levels_deep() -> None:
    found: dict[str, object] = {"a": {"b": {"c": {"d": "deep", "e": {"f": "too deep"}}}}, "n": 1, "bytes": [104, 105]}
    assert dict(texts(found)) == {("a", "b", "c", "d"): "deep", ("bytes",): "hi"}
    assert message(found, lambda text: "deep" in text) == ("a", "b", "c", "d")
    assert message(found, lambda text: False) is None
    assert (value_at(found, ("bytes",)), value_at(found, ("a", "x")), value_at(found, ("n",))) == ("hi", None, None)
    assert dict(texts({"bytes": [255, 256], "none": []})) == {}


@pytest.mark.parametrize(
    ("found", "t"),
    [
        ("2026-01-29T13:12:45.5Z", "2026-01-29 13:12:45"),
        ("2026/01/29 13:12:45", "2026-01-29 13:12:45"),
        ("Jan  9, 2026 @ 13:12:45.5", "2026-01-09 13:12:45"),
        ("Dec 19 13:12:45", None),
        ("2026-13-29 13:12:45", None),
        ("13:12:45.5", None),
    ],
)
def test_times_of_other_programs(found: str, t: str | None) -> None:
    assert stamp(found) == (epoch(t) if t is not None else None)


@pytest.mark.parametrize(
    ("found", "t"),
    [
        ({"ts": 1_795_946_400}, 1_795_946_400.0),
        ({"ts": 1_795_946_400_000}, 1_795_946_400.0),
        ({"__REALTIME_TIMESTAMP": "1795946400000000"}, 1_795_946_400.0),
        ({"_SOURCE_REALTIME_TIMESTAMP": "1795946400000000"}, 1_795_946_400.0),
        ({"time": 12, "timestamp": 1_795_946_400.5}, 1_795_946_400.5),
        ({"ts": 1e9}, None),
        ({"asctime": "no time", "@timestamp": "1795946400"}, 1_795_946_400.0),
        ({}, None),
    ],
)
def test_the_time_of_an_entry(found: dict[str, object], t: float | None) -> None:
    assert stamp(found) == t


def test_a_number_with_a_point_is_a_time_only_where_it_can_be_one() -> None:
    assert (stamp("1795946400.25"), stamp("1495946400.25")) == (1_795_946_400.25, None)


@pytest.mark.parametrize(
    ("stamp_", "near", "t"),
    [
        ("12-31 23:00:00", "2027-01-01 01:00:00", "2026-12-31 23:00:00"),
        ("01-01 01:00:00", "2026-12-31 23:00:00", "2027-01-01 01:00:00"),
        ("06-15 01:00:00", "2026-12-01 00:00:00", "2026-06-15 01:00:00"),
        ("02-30 01:00:00", "2026-03-01 00:00:00", None),
    ],
)
def test_a_date_without_a_year_is_of_the_nearest(stamp_: str, near: str, t: str | None) -> None:
    assert epoch(stamp_, epoch(near)) == (epoch(t) if t is not None else None)
    assert epoch(stamp_) is None


def test_what_an_exception_is_called() -> None:
    assert [snake(name) for name in ("AssertionError", "OOMError", "IOTimeout", "Value2Error")] == [
        "assertion_error",
        "oom_error",
        "io_timeout",
        "value2_error",
    ]


def test_the_rank_of_nccl_is_inferred_from_its_gpu() -> None:
    found = origin("host-a:12:34 [3] NCCL INFO comm", RULES)
    assert (found.rank, found.rank_inferred, found.source, found.level) == ("TP3", True, "nccl", "info")
    own = origin(f"{AT}host-a:12:34 [3] NCCL INFO comm", RULES)
    assert (own.rank, own.rank_inferred, own.source) == ("TP0", False, "nccl")


def test_the_words_of_a_long_line_begin_where_they_did() -> None:
    index = LogIndex(live=False)
    index.follow(LogReading("f", text=f"{AT}{'x' * 5000}\n{AT}short\n"))
    settle(index)
    found = [(line.body, len(line.text) <= 4096, line.text[: line.body]) for _, line in index.block(0)]
    index.close()
    assert found == [(26, True, AT), (26, True, AT)]


def test_the_words_of_a_line_with_a_wide_space_begin_where_they_did() -> None:
    index = LogIndex(live=False)
    index.follow(LogReading("f", text=f"{AT}weights\u3000loaded\n"))
    settle(index)
    found = [(line.body, line.text) for _, line in index.block(0)]
    index.close()
    assert found == [(len(AT), f"{AT}weights\u3000loaded")]


def test_the_place_of_an_error_is_short() -> None:
    hit = f"{AT}Scheduler hit an exception: Traceback (most recent call last):\n"
    error = fold(f'{hit}  File "/x/{"a" * 150}.py", line 1, in f\nValueError: no\n').error
    assert error is not None and len(error.place) == 100


def test_no_key_of_the_diffusion_server_is_kept() -> None:
    args = args_in('server_args: {"model_path": "/m", "api_key": "k", "tp_size": 2, "port": 1}')
    assert args is not None
    assert (args.tp, args.port, dict(args.raw)) == (2, 1, {"model_path": "/m", "tp_size": "2", "port": "1"})
    assert (args_in("server_args: {broken}"), args_in("no arguments")) == (None, None)


def test_what_comes_after_the_last_line_end_is_kept_for_the_next_reading() -> None:
    made = LogFold()
    for t, text in enumerate((f"{AT}one\n{AT}Load we", "ight begin. avail mem=1.00 GB\n")):
        made.feed(LogReading("f", text=text), float(t))
    state = made.state()
    assert (state.lines, [one.name for one in state.milestones]) == (2, ["load_begin"])


def test_a_weak_prefix_is_learned_when_it_is_seen_again() -> None:
    line = f"note: {AT}Load weight begin. avail mem=1.00 GB"
    assert Envelope(RULES).learn([line]) is None
    assert Envelope(RULES).learn([line, line]) == 1


def test_a_warning_of_glog_is_not_the_servers() -> None:
    own = f"{AT}WARNING: x\n"
    assert [fold(text).warnings for text in (own, f"{own}W0129 13:12:39.123456 12 a.cc:1] x\n")] == [1, 1]


def test_how_far_the_writer_is_goes_to_the_panel() -> None:
    index = LogIndex(live=False)
    index.follow(LogReading("f", text="x\n", writer_offset=2))
    index.close()
    assert index.writer_offset == 2
