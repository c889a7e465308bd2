"""What panels select and paint, as values: no terminal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.model import (
    Evidence,
    FdTarget,
    Listener,
    Mark,
    Missing,
    PortReading,
    Process,
    ProcsReading,
    RankProgress,
    Role,
    Series,
    Snapshot,
    Verdict,
    WatchDirReading,
    WatchedDir,
)
from sgmon.model.preflight import Forecast, Level
from sgmon.units import rough
from tests.diagnosis.replay import replay
from tests.ui import fakes
from tui_app.exit_summary import exit_summary
from widgets import gpu_layout, gpu_view, port, startup, verdictbar, waiting, worker_columns
from widgets.detail_lines import detail_lines
from widgets.hints import hint_line
from widgets.line import Line, ascii_line, cell, changed_cells, crop, join_ends, plain, width_of, wrap
from widgets.meters import bar, by_slot, strip
from widgets.phases import DONE, NEXT, NOW, rank_rows
from widgets.stack_lines import StackOptions, common_outer, dump_lines
from widgets.worker_rows import fold_rows, log_sentence, worker_rows


def text(rows: list[Line]) -> str:
    return "\n".join(plain(row).rstrip() for row in rows)


# lines


def test_lines_are_cut_and_padded_in_cells_not_characters() -> None:
    wide = (("宽字符abc", ""),)
    assert width_of(wide) == 9
    assert width_of(crop(wide, 5)) == 5
    assert plain(crop(wide, 5)).endswith("…")
    assert cell("宽字", 7)[0] == "宽字   "
    assert width_of(join_ends(wide, (("right", ""),), 30)) == 30


def test_wrap_breaks_at_spaces_and_keeps_every_word() -> None:
    line = (("one two three four five six seven eight", ""),)
    rows = wrap(line, 15, indent=2)
    assert all(width_of(row) <= 15 for row in rows)
    assert " ".join(plain(row) for row in rows).split() == plain(line).split()
    assert "".join(plain(row).strip() for row in wrap((("x" * 50, ""),), 20)) == "x" * 50


def test_ascii_stand_ins_keep_the_width() -> None:
    line = (("▸─■·✓▶▷✗░▁▂▃▄▅▆▇█…→", "ok"),)
    assert plain(ascii_line(line)).isascii()
    assert width_of(ascii_line(line)) == width_of(line)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("model-00003-of…", "model-00003-..."),
        ("reads …sglang/srt/models/x.py", "reads ...lang/srt/models/x.py"),
        ("…de-17", "...-17"),
        ("T…  a…  …", ("..  ..  .")),
        ("two words…·", "two wor...."),
    ],
)
def test_cut_text_ends_in_dots_in_ascii(text: str, shown: str) -> None:
    """Over the word that is cut: the line is as long as before, and its styles stay where they are."""
    assert plain(ascii_line(((text, ""),))) == shown
    parts = tuple((char, str(number)) for number, char in enumerate(text))
    assert plain(ascii_line(parts)) == shown and [style for _, style in ascii_line(parts)] == [s for _, s in parts]


def test_in_ascii_what_parts_two_states_is_no_glyph_of_a_state() -> None:
    turns = (("waiting", 20), ("slow", 10), ("stalled", 0))
    row = verdictbar.history_row(verdictbar.select(fakes.stuck())._replace(history=turns), 100)
    shown = ascii_line(row)
    assert "waiting 20s ago,  > slow 10s ago,  # stalled now" in plain(shown)
    assert width_of(shown) == width_of(row)


def test_ages_move_in_steps() -> None:
    assert [rough(s) for s in (0.4, 2.9, 3, 9.9, 14, 61, 119, 601, 659)] == [0, 0, 3, 9, 10, 60, 110, 600, 600]


# meters


def test_a_bar_is_never_full_nor_empty_by_rounding() -> None:
    assert plain(bar(0.0, 10)) == "·" * 10
    assert plain(bar(0.001, 10)).count("■") == 1
    assert plain(bar(0.999, 10)).count("■") == 9
    assert plain(bar(1.0, 10)) == "■" * 10
    assert plain(bar(None, 4)) == "????"


def test_a_strip_has_a_fixed_scale_and_keeps_gaps() -> None:
    assert plain(strip([98.0, 98.0, None, 98.0], 4, 100.0)) == "██ █"
    assert plain(strip([0.0], 3, 100.0)) == "  ▁"
    assert by_slot([(0.5, 1.0), (1.5, 2.0), (3.5, 4.0)], now=4.0, slots=4, slot_s=1.0) == [1.0, 2.0, None, 4.0]


# startup


def test_equal_ranks_fold_and_the_odd_one_stays_apart() -> None:
    rows = rank_rows(fakes.stuck())
    assert [row.ranks for row in rows] == [tuple(f"TP{i}" for i in (0, 1, 2, 4, 5, 6, 7)), ("TP3",), ("launcher",)]
    assert rows[0].cells[2:4] == (DONE, NEXT)
    assert rows[1].cells[2] == NOW
    assert rows[1].odd


def test_a_leading_rank_that_draws_the_bar_is_no_odd_one() -> None:
    base = fakes.loading()
    ranks = (RankProgress("TP0", "weights_progress", 190, "weights", None, 299.0), *base.log.ranks[1:])
    rows = rank_rows(replace(base, log=replace(base.log, ranks=ranks)))
    assert rows[0].ranks == tuple(f"TP{i}" for i in range(8))
    assert rows[0].last == "load_begin"


def test_importing_is_said_to_be_normal() -> None:
    rows = rank_rows(fakes.importing())
    assert rows[0].kind == "importing"
    assert "normal" in rows[0].last
    assert "waits for the ranks (normal)" in rows[1].last


def test_ranks_sort_by_number() -> None:
    base = fakes.loading(tp=16)
    rows = rank_rows(base)
    assert rows[0].ranks[-1] == "TP15"
    assert rows[0].ranks[2] == "TP2"


def test_ready_is_done_everywhere() -> None:
    view = startup.select(fakes.ready())
    assert all(cell_state == DONE for cell_state in view.rows[0].cells[:6])
    assert view.rows[-1].last == "serves"
    assert dict(view.took)["weights"] == 475


def test_a_draft_model_gets_columns_only_when_the_log_speaks_of_it() -> None:
    base = fakes.loading()
    assert "draft_weights" not in {phase.name for phase in startup.select(base).columns}
    with_draft = replace(base, log=replace(base.log, phase="draft_weights"))
    assert "draft_weights" in {phase.name for phase in startup.select(with_draft).columns}


@pytest.mark.parametrize("width", [40, 60, 66, 80, 120])
def test_startup_fits(width: int) -> None:
    for snapshot in (fakes.stuck(), fakes.loading(), fakes.ready(), fakes.loading(tp=1)):
        assert all(width_of(crop(row, width)) <= width for row in startup.paint(startup.select(snapshot), width, 8))


# GPUs


def test_gpus_fold_when_there_is_no_room() -> None:
    view = gpu_view.select(fakes.stuck())
    assert len(gpu_layout.paint(view, 60, 8)) == 8
    folded = text(gpu_layout.paint(view, 60, 3))
    assert "0-2,4-7" in folded
    assert "!3" in folded


def test_no_nvml_says_why_and_what_to_do() -> None:
    words = text(gpu_layout.paint(gpu_view.select(fakes.no_nvml()), 100, 8))
    assert "libnvidia-ml.so.1 was not found" in words
    assert "fix: start the container with --gpus all" in words


def test_unknown_gpu_values_are_no_zero() -> None:
    lost = fakes.gpu(0, used_bytes=None, util_percent=None, power_w=None)
    snapshot = replace(fakes.loading(), gpu=replace(fakes.loading().gpu, gpus=(lost,)))
    rows = text(gpu_layout.paint(gpu_view.select(snapshot), 60, 8))
    assert "?/79.6" in rows
    assert "power not known" in rows
    assert " 0%" not in rows


def test_gpu_history_keeps_a_gap() -> None:
    points = tuple((float(t), None if 288 <= t < 296 else 40e9) for t in range(200, 300))
    view = gpu_view.select(replace(fakes.loading(), series=(Series("gpu0.used", points),)))
    assert None in view.rows[0].used_history[-5:]


# workers


def test_worker_rows_come_in_the_order_of_the_ranks() -> None:
    rows = worker_rows(fakes.stuck())
    assert [row.label for row in rows][:3] == ["launcher", "TP0", "TP1"]
    odd = next(row for row in rows if row.odd)
    assert odd.pids == (4803,)
    assert "model-00064" in odd.blocked


def test_folding_keeps_the_odd_rank_and_the_stalest_sign() -> None:
    rows = fold_rows(worker_rows(fakes.stuck()))
    group = next(row for row in rows if len(row.pids) == 7)
    assert group.label == "TP0-2,4-7"
    assert group.activity_s == 510
    assert any(row.label == "TP3" for row in rows)


def test_ranks_that_work_fold_whatever_their_state_is_at_the_moment() -> None:
    rows = fold_rows(worker_rows(fakes.loading()))
    assert [row.label for row in rows if row.is_rank] == ["TP0-7"]


def test_where_the_output_goes() -> None:
    assert log_sentence(fakes.loading())[0] == f"8 ranks + launcher write to {fakes.LOG_PATH} (file)"
    elsewhere = tuple(
        replace(p, same_log=False, stdio=(None, "pipe:[5]", "pipe:[5]")) if p.rank == "TP2" else p
        for p in fakes.loading().procs.processes
    )
    words, style = log_sentence(replace(fakes.loading(), procs=ProcsReading(elsewhere)))
    assert words == "TP2 writes ELSEWHERE than the launcher: pipe:[5]"
    assert style == "warn"


def test_cpu_alone_is_no_sign_of_life_while_there_is_another() -> None:
    base = fakes.loading()
    clocks = tuple(replace(c, marks=(Mark("cpu", 299.5, "cpu"), *c.marks)) for c in base.clocks)
    row = next(row for row in worker_rows(replace(base, clocks=clocks)) if row.label == "TP0")
    assert row.activity == "bytes"


def test_not_permitted_is_not_unknown() -> None:
    blind = fakes.process(0, wchan=None, call=None, missing=(Missing("wchan", "other user", "run as root"),))
    row = next(r for r in worker_rows(replace(fakes.loading(), procs=ProcsReading((blind,)))) if r.label == "TP0")
    assert row.blocked.startswith("not permitted")
    snapshot = replace(fakes.loading(), procs=ProcsReading((blind,)))
    assert "run as root" in text(detail_lines(snapshot, 4800))


def test_why_a_helper_has_no_counters_is_said() -> None:
    helper = Process(4900, 4711, 5, Role.RESOURCE_TRACKER, state="S", fds=(FdTarget(7, "/m/a.bin", "weights", 2048),))
    shown = text(detail_lines(replace(fakes.loading(), procs=ProcsReading((helper,))), 4900))
    assert "of a helper only its state and its CPU time are read" in shown
    assert "weights, at 2.0 KiB" in shown


def test_a_dead_worker_says_how_it_ended() -> None:
    row = next(row for row in worker_rows(fakes.crashed()) if row.label == "TP3")
    assert row.state == "signal 9"
    assert "OOM killer" in row.blocked


@pytest.mark.parametrize(
    ("blocked", "width", "expected"),
    [
        ("a barrier, for the other ranks: barrier (torch/distributed)", 40, "a barrier, for the other ranks"),
        (
            "spins in a collective: its GPU is pinned at 100 %",
            60,
            "spins in a collective: its GPU is pinned at 100 %",
        ),
        ("kernel: poll_schedule_timeout.constprop.0", 20, "kernel: poll_schedule_timeout.constprop.0"),
    ],
)
def test_what_a_worker_is_blocked_in_loses_its_details_where_they_do_not_fit(
    blocked: str, width: int, expected: str
) -> None:
    assert worker_columns.shorten(blocked, width) == expected


def test_workers_have_a_column_of_shards_while_one_has_any() -> None:
    rows = worker_rows(fakes.stuck())
    assert any(row.shards for row in rows) and "shards" in plain(
        worker_columns.header_line(worker_columns.plan(rows, 120))
    )
    none = [row._replace(shards=None) for row in rows]
    assert "shards" not in plain(worker_columns.header_line(worker_columns.plan(none, 120)))


def test_a_part_of_the_identity_that_does_not_fit_whole_is_left_out() -> None:
    identity = "DeepSeek-V4-FP8 · TP8 · SGLang 0.5.23 · pid 11350"
    assert startup._whole_parts(identity, 60) == identity
    assert startup._whole_parts(identity, 48) == "DeepSeek-V4-FP8 · TP8 · SGLang 0.5.23"
    assert startup._whole_parts(identity, 4) == "DeepSeek-V4-FP8"


def test_a_long_path_keeps_its_end() -> None:
    assert worker_columns.shorten("read /models/very/long/path/model-00064.safetensors", 30).endswith(
        "model-00064.safetensors"
    )


# port


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (PortReading("h", 1, "refused"), "refused normal: it opens last"),
        (PortReading("h", 1, "no_response"), "accepts, no answer"),
        (PortReading("h", 1, "http", 503, 0.002), "/health 503 not ready yet in 0.0s"),
        (PortReading("h", 1, "http", 200, 1.0), "/health 200 in 1.0s"),
        (
            PortReading("h", 1, "http", 200, 1.0, listeners=(Listener("h:1", 9, False, "nginx"),)),
            "ANOTHER PROCESS: pid 9 nginx",
        ),
        (PortReading("h", 1, "timeout"), "no connection in time"),
    ],
)
def test_port_in_words(reading: PortReading, words: str) -> None:
    assert words in text(port.paint(port.select(replace(fakes.loading(), port=reading))))


def test_a_refused_port_after_ready_is_not_normal() -> None:
    snapshot = replace(fakes.ready(), port=fakes.REFUSED)
    assert "after the ready line" in text(port.paint(port.select(snapshot)))


def test_watched_folders_stand_below_the_port() -> None:
    snapshot = fakes.loading()
    now = snapshot.epoch + snapshot.t
    dirs = (WatchedDir("/dev/shm/dump", 12, 34 << 20, 34 << 20, now - 4), WatchedDir("/later", note="not there yet"))
    shown = text(port.paint(port.select(replace(snapshot, watch_dirs=WatchDirReading(dirs)))))
    assert "/dev/shm/dump: 12 files, 34.0 MiB, last change 4s ago" in shown
    assert "/later: not there yet" in shown


# verdict, waiting, stacks, exit_summary


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 8, 12])
@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_the_verdict_is_first_whatever_the_size(width: int, height: int) -> None:
    rows = verdictbar.paint(verdictbar.select(fakes.stuck()), width, height)
    assert len(rows) == height
    assert "STALLED" in plain(rows[0])
    if height >= 4 and width >= 60:
        assert any(plain(row).startswith(" next") for row in rows)
        assert any(plain(row).startswith(" proc") for row in rows)


def test_doubt_is_a_number_and_a_silence_is_called_one() -> None:
    base = fakes.stuck()
    unsure = replace(base, verdict=replace(base.verdict, confidence=0.7))
    assert "70% sure, silent" in plain(verdictbar.paint(verdictbar.select(unsure), 120, 8)[0])


@pytest.mark.parametrize(("width", "note"), [(60, "40s/40s (cut)"), (80, "40s/40s (cut) at the end"), (140, "a.gz")])
def test_a_replay_says_where_it_is_before_the_name_of_its_file(width: int, note: str) -> None:
    shown = replace(fakes.stuck(), replay="40s/40s (cut) at the end a.gz")
    assert note in text(verdictbar.paint(verdictbar.select(shown), width, 8))


def test_warnings_are_counted_beside_the_headline_of_a_start_that_goes_on() -> None:
    doubts = tuple(Forecast(f"r{n}", "c", Level.WARNING, "w") for n in range(2))
    base = replace(fakes.stuck(), forecasts=(*doubts, Forecast("r", "c", Level.OK, "fine")))
    assert "warning" not in plain(verdictbar.paint(verdictbar.select(base), 120, 8)[0]), (
        "a stall is more than a doubt"
    )
    going = replace(base, verdict=replace(base.verdict, state="progressing"))
    assert "2 warnings," in plain(verdictbar.paint(verdictbar.select(going), 120, 8)[0])


@pytest.mark.parametrize(
    ("before", "after", "cells"),
    [
        ((("silent 26s", "dim"),), (("silent 27s", "dim"),), (8, 9)),
        ((("same", "ok"),), (("same", "bad"),), (0, 4)),
        ((("longer", ""),), (("long", ""),), (4, 6)),
        ((("größe 1", ""),), (("größe 2", ""),), (6, 7)),
        ((("漢 1", ""),), (("漢 2", ""),), (0, 20)),
    ],
)
def test_only_cells_that_differ_are_sent(before: Line, after: Line, cells: tuple[int, int]) -> None:
    assert changed_cells(before, after, 20) == cells


def test_the_way_out_is_the_last_hint_to_go() -> None:
    replay = (("space", "pause"), (".", "step"), ("+-", "speed"), ("←→", "10 s"), ("?", "help"), ("q", "quit"))
    for width in (30, 40, 60):
        shown = plain(hint_line((("d", "stack"),), replay, width))
        assert shown.rstrip().endswith("q quit") and "? help" in shown, width


def test_a_signal_and_a_rank_do_not_run_into_each_other() -> None:
    line = plain(verdictbar.evidence_line(Evidence("compiler", "builds a kernel", rank="TP0")))
    assert "compiler TP0 builds" in line


def test_waiting_says_what_is_looked_for_and_how_to_start() -> None:
    words = text(waiting.paint(waiting.select(fakes.waiting()), 100))
    assert "sglang.launch_server" in words
    assert "sgmon demo" in words


def test_sglang_frames_are_told_from_library_frames() -> None:
    assert [StackOptions(family="sglang").is_own(frame) for frame in fakes.BARRIER[:5]] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_outer_frames_that_all_share_are_counted() -> None:
    assert common_outer([fakes.BARRIER, fakes.READING]) == 6


def test_other_threads_fold_to_their_names() -> None:
    one = fakes.dump(3, fakes.READING, 10.0)
    assert "+ 2 other threads" in text(dump_lines(one, StackOptions()))
    assert "subproc_pool.py:57" in text(dump_lines(one, StackOptions(threads=True)))


def test_farewell_is_two_lines() -> None:
    for snapshot in (fakes.stuck(), fakes.ready(), fakes.waiting(), Snapshot(), fakes.hostile()):
        lines = exit_summary(snapshot)
        assert len(lines) == 2
        assert all(line.isprintable() for line in lines)


def test_what_stays_of_a_replay_is_no_command_on_processes_of_another_time() -> None:
    first, second = exit_summary(replace(fakes.stuck(), replay="REPLAY 1m00s/1m00s"))
    assert first.startswith("sgmon: in the recording: stalled")
    assert second.startswith("next at that time: ")
    assert "--pid" not in second and "kill" not in second


def test_who_has_just_started_a_server_is_not_told_to_start_one() -> None:
    words = text(waiting.paint(waiting.select(fakes.waiting()), 100, is_started=True))
    assert "looking for" in words and "sgmon run" not in words and "--pid" not in words


def test_a_recording_without_a_server_offers_no_command() -> None:
    view = waiting.select(replace(fakes.waiting(), replay="REPLAY 0.0s/0.0s"))
    words = text(waiting.paint(view, 100))
    assert "no SGLang or vLLM server up to this moment of the recording" in words
    assert "sgmon" not in words


def test_the_second_step_is_not_hidden_behind_a_third_fact() -> None:
    stuck = verdictbar.select(fakes.stuck())
    assert len(stuck.verdict.next) == 2 and len(stuck.verdict.evidence) > 3
    words = text(verdictbar.paint(stuck, 80, 8))
    assert all(step.command in words for step in stuck.verdict.next), words


def test_the_first_fact_is_the_last_to_be_cut() -> None:
    verdict = fakes.crashed().verdict
    long = Evidence(
        "log", "TP2 line 96: safetensors_rust.SafetensorError: Error while deserializing header: incomplete"
    )
    snapshot = replace(fakes.crashed(), verdict=replace(verdict, evidence=(long, *verdict.evidence), next=()))
    words = " ".join(text(verdictbar.paint(verdictbar.select(snapshot), 60, 5)).split())
    assert "Error while deserializing header: incomplete" in words


def test_a_launcher_that_is_left_after_a_crash_waits_for_nobody() -> None:
    crashed = replay("vllm-live-shard-missing")[1]
    words = text(startup.paint(startup.select(crashed), 80, 12))
    assert "waits for the ranks" not in words
    assert "launcher has not ended yet" in words


def test_no_row_says_took_and_nothing_else() -> None:
    last = replay("field-cpu-orph")[1]
    words = text(startup.paint(startup.select(last), 64, 12))
    assert not any(row.split() == ["took"] for row in words.splitlines())


def test_no_word_of_a_headline_is_lost_where_it_wraps() -> None:
    words = [f"w{number}" for number in range(60)]
    for width in range(60, 140):
        verdict = Verdict("stalled", " ".join(words), confidence=1.0)
        rows = verdictbar.headline_rows(verdictbar.VerdictView(verdict, 37, (), 1, ""), width)
        said = " ".join("".join(text for text, _ in row) for row in rows).split()
        kept = [word for word in said if word in words]
        assert kept == words[: len(kept)], (width, said)


@pytest.mark.parametrize("width", [8, 9, 12, 20])
def test_an_indent_as_wide_as_the_page_leaves_room_for_words(width: int) -> None:
    """The help in a narrow terminal: it took all memory of the machine."""
    rows = wrap((("   state ", ""), ("word " * 12, "")), width, indent=20)
    assert "".join(plain(row) for row in rows).count("word") == 12
    assert all(width_of(row) <= width for row in rows)


def test_a_server_that_is_gone_is_not_up() -> None:
    """Ten minutes after its end it is not older than at its end; one whose launcher lives is up."""
    crash = fakes.crashed()
    gone = tuple(replace(one, gone=True) for one in crash.procs.processes)
    ended = replace(crash, procs=replace(crash.procs, processes=gone))
    for snapshot, word, later_s in ((ended, "ran", 0), (crash, "up", 600)):
        first, later = (startup.select(replace(snapshot, t=610.0 + wait_s)) for wait_s in (0.0, 600.0))
        assert first.up_s is not None and later.up_s == first.up_s + later_s
        assert f" {word} " in "".join(text for text, _ in startup.StartupPanel().corner(later))
