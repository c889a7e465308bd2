"""Baselines come from the last ready starts of the same key, then of a wider one, and say which."""

import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

from msgspec.structs import replace

from sgmon.history.database import FinishedStart, PassedMilestone, StartDatabase, StartKey
from sgmon.history.finished_start import flags_of

KEY = StartKey("m", "0.5.23", "tp8 dp1 pp1 n1", "H200", "host-a", "ext4", "warm")


def _run(started: float, ready_s: float, key: StartKey = KEY, outcome: str = "ready") -> FinishedStart:
    return FinishedStart(
        key=key,
        started=started,
        outcome=outcome,
        duration_s=ready_s,
        lines=641,
        milestones=(PassedMilestone("load_begin", 20.0, 100), PassedMilestone("kv_alloc", ready_s - 100, 233)),
        gaps=((ready_s / 4, 217),),
        args=(("tp_size", "8"),),
    )


def test_no_start_yet_no_number(tmp_path: Path) -> None:
    assert StartDatabase(tmp_path / "h.sqlite").baseline(KEY) is None


def test_the_last_ten_ready_starts_make_the_baseline(tmp_path: Path) -> None:
    history = StartDatabase(tmp_path / "h.sqlite")
    history.add(_run(0.0, 99_999.0))  # older than the last ten
    for number in range(10):
        history.add(_run(float(number + 1), 600.0 + number))
    history.add(_run(50.0, 7.0, outcome="crashed"))
    base = history.baseline(KEY)
    assert base is not None
    assert (base.count, base.ready_median_s, base.ready_p90_s, base.lines) == (10, 604.5, 608.0, 641)
    assert "same model" in base.like
    kv = next(one for one in base.milestones if one.name == "kv_alloc")
    assert (kv.median_s, kv.line) == (504.5, 233)


def test_a_wider_key_is_used_and_named(tmp_path: Path) -> None:
    history = StartDatabase(tmp_path / "h.sqlite")
    history.add(_run(1.0, 600.0, replace(KEY, host="host-b")))
    base = history.baseline(KEY)
    assert base is not None
    assert "another host" in base.like
    assert history.baseline(replace(KEY, model="other")) is None


def _add(path: str, pid: int) -> None:
    for number in range(20):
        StartDatabase(Path(path)).add(replace(_run(float(number), 600.0), pid=pid))


def test_two_monitors_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add, args=(str(path), pid)) for pid in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert len(StartDatabase(path).runs(100)) == 40


def _add_together(path: str, start: Barrier, pid: int) -> None:
    start.wait(60)
    StartDatabase(Path(path)).add(replace(_run(1.0, 600.0), pid=pid))


def test_monitors_that_make_the_tables_at_the_same_moment_lose_nothing(tmp_path: Path) -> None:
    """SQLite refuses at once, without waiting, to change the journal while another connection holds the file."""
    context = multiprocessing.get_context("fork")
    for number in range(6):
        path, start = tmp_path / f"{number}.sqlite", context.Barrier(4)
        writers = [context.Process(target=_add_together, args=(str(path), start, pid)) for pid in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(60)
        assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
        assert len(StartDatabase(path).runs(100)) == 4


def test_a_run_comes_back_as_it_went_in(tmp_path: Path) -> None:
    history = StartDatabase(tmp_path / "h.sqlite")
    number = history.add(_run(1.0, 600.0))
    assert history.get(number) == replace(_run(1.0, 600.0), id=number)
    assert history.get(number + 1) is None


def test_flags_that_change_the_duration_keep_starts_apart(tmp_path: Path) -> None:
    """They are in the arguments of each start: no column of their own, so that old databases have them too."""
    database = StartDatabase(tmp_path / "h.sqlite")
    args = (("attention_backend", "triton"), ("port", "1"))
    plain = FinishedStart(replace(KEY, flags=flags_of(args)), 1.0, "ready", 30.0, 5, pid=1, args=args)
    compiled = (*args, ("enable_torch_compile", "True"))
    database.add(plain)
    database.add(FinishedStart(replace(KEY, flags=flags_of(compiled)), 2.0, "ready", 90.0, 5, pid=2, args=compiled))
    assert [run.key.flags for run in database.runs()] == [
        "attention_backend=triton enable_torch_compile=True",
        "attention_backend=triton",
    ]
    base = database.baseline(plain.key)
    assert base is not None and (base.count, base.ready_median_s) == (1, 30.0)
    assert database.baseline(replace(KEY, flags="quantization=fp8")) is None
