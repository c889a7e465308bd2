"""Two dumps of one process beside each other."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.stacks import compare as comparing
from sgmon.analyse.stacks.render import dump_lines
from sgmon.model import Role, StackChange, StackDump
from tests.stacks.stack_files import RULES, made, recorded


def compare(before: StackDump, after: StackDump, version: str = "") -> StackChange:
    return comparing.compare(before, after, version, RULES)


def test_the_same_place() -> None:
    first = recorded("load_tp0_barrier.json", sample=0)
    second = replace(first, t=12.0)
    found = compare(first, second)
    assert "the same frames and lines, 12s apart, which waits in the barrier after loading" in found.words
    assert found.was == found.now == ""


def test_another_phase() -> None:
    found = compare(recorded("weights_loader.json"), recorded("jit_tp0_ninja.json", sample=90), "0.5.17")
    assert found.words == "went from weights to graphs within 1m30s"
    assert (found.was, found.now) == ("RowParallelLinear.weight_loader", "Popen.communicate")


def test_inside_one_function() -> None:
    found = compare(made("a@x.py:1 < b@x.py:2"), made("c@x.py:1 < b@x.py:2", sample=3))
    assert found.words == "moved inside b, 3.0s apart"
    assert compare(made("a@x.py:1"), made("a@x.py:2", sample=3)).words.startswith("the same functions on other lines")


def test_native_and_plain_can_be_compared() -> None:
    found = compare(recorded("capture_tp0_synchronize_a.json"), recorded("capture_tp0_native.json", sample=14))
    assert found.words.startswith("the same frames and lines, 14s apart")


def test_nothing_to_compare() -> None:
    empty = StackDump(1, "TP0", Role.WORKER, 0.0, error="not permitted")
    assert compare(empty, made("a@x.py")).words == "no stack in the first"
    assert list(dump_lines(empty)) == ["pid 1", "  no stack: not permitted"]


def test_dump_lines_fold_libraries() -> None:
    dump = replace(recorded("jit_tp0_ninja.json"), command="py-spy dump --pid 1", took_s=0.015)
    lines = list(dump_lines(dump))
    assert lines[0] == "$ py-spy dump --pid 1 in 0.0s"
    assert any("library frames" in line for line in lines)
    assert any("run_scheduler_process" in line for line in lines)
    assert not any("spawn_main" in line for line in lines)
    assert any("spawn_main" in line for line in dump_lines(dump, full=True))
