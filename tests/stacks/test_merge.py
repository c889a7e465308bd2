"""Classes of ranks: recorded pairs, and what eight ranks look like."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sgmon.analyse.stacks import merge as merging
from sgmon.analyse.stacks.refusals import ZOMBIE
from sgmon.analyse.stacks.render import class_lines, heading, tree_lines
from sgmon.analyse.stacks.tree import tree
from sgmon.model import Missing, Role, StackClass, StackDump
from tests.stacks.stack_files import RULES, made, recorded


def merge(dumps: list[StackDump]) -> tuple[StackClass, ...]:
    return merging.merge(dumps, RULES)


RANKS = [f"TP{n}" for n in range(8)]


def _samples(name: str, rank: str, count: int = 3) -> list[StackDump]:
    return [recorded(name, rank, sample) for sample in range(count)]


def test_seven_in_the_barrier_one_still_loading() -> None:
    dumps = [dump for rank in RANKS if rank != "TP3" for dump in _samples("load_tp0_barrier.json", rank)]
    dumps += [recorded("weights_loader.json", "TP3", 0), recorded("weights_embedding.json", "TP3", 1)]
    outlier, rest = merge(dumps)
    assert (outlier.ranks, outlier.outlier, outlier.moving) == (("TP3",), True, True)
    assert rest.ranks == tuple(rank for rank in RANKS if rank != "TP3")
    assert (rest.outlier, rest.moving) == (False, False)
    assert "barrier after loading" in rest.note
    assert heading([outlier, rest]) == "[TP0-2,4-7] | missing TP3"


def test_real_pair_in_capture_names_nobody() -> None:
    """TP1 was stopped, but both wait: stacks alone cannot tell, and must not pretend to."""
    dumps = [recorded(f"capture_tp0_synchronize_{x}.json", "TP0", n) for n, x in enumerate("ab")]
    dumps += [recorded(f"capture_tp1_barrier_{x}.json", "TP1", n) for n, x in enumerate("ab")]
    classes = merge(dumps)
    assert [(found.ranks, found.outlier, found.moving) for found in classes] == [
        (("TP0",), False, False),
        (("TP1",), False, False),
    ]
    assert heading(classes) == "[TP0] | [TP1]"


def test_real_pair_with_a_compiler_and_a_lock() -> None:
    """TP1 waits for TP0's lock, TP0 for its ninja: neither waits for a collective, so none is an outlier."""
    classes = merge([recorded("jit_tp0_ninja.json", "TP0"), recorded("jit_tp1_filelock.json", "TP1")])
    assert len(classes) == 2
    assert not any(found.outlier for found in classes)


def test_two_ranks_one_waits_for_the_other() -> None:
    outlier, rest = merge([recorded("warmup_tp0_all_reduce.json", "TP0"), recorded("warmup_tp1_forward.json", "TP1")])
    assert (outlier.ranks, outlier.outlier) == (("TP1",), True)
    assert (rest.ranks, rest.outlier) == (("TP0",), False)


def test_most_still_load_and_one_has_finished_is_no_outlier() -> None:
    dumps = [recorded("weights_loader.json", rank) for rank in RANKS[1:]]
    classes = merge([recorded("load_tp0_barrier.json", "TP0"), *dumps])
    assert not any(found.outlier for found in classes)
    assert [len(found.ranks) for found in classes] == [1, 7]


def test_nobody_here_is_missing_when_all_wait_at_the_rendezvous() -> None:
    """Rank 0 serves the store and is elsewhere than those who connect; who is missing is not on this node."""
    helper = "_new_process_group_helper@torch/distributed/distributed_c10d.py < init_process_group"
    classes = merge([recorded("rendezvous.json", "TP0"), *[made(helper, rank) for rank in RANKS[1:]]])
    assert heading(classes) == "[TP0] | [TP1-7]"


def test_ranks_at_work_in_one_phase_are_one_class() -> None:
    classes = merge([recorded("weights_loader.json", "TP0"), recorded("weights_embedding.json", "TP1")])
    assert [found.ranks for found in classes] == [("TP0", "TP1")]
    assert "one sample" in classes[0].note


def test_lines_divide_no_ranks_but_show_movement() -> None:
    dumps = [made(f"f@a.py:{10 + sample} < g@b.py:1", rank, sample) for rank in RANKS for sample in range(3)]
    (found,) = merge(dumps)
    assert found.ranks == tuple(RANKS)
    assert found.moving
    unmoved = [made("f@a.py:10 < g@b.py:1", rank, sample) for rank in RANKS for sample in range(3)]
    (found,) = merge(unmoved)
    assert not found.moving
    assert "long computation" in found.note


def test_a_poll_loop_inside_a_wait_is_not_movement() -> None:
    dumps = [
        made(f"_poll_until_acquired@filelock/_api.py:{line} < acquire@filelock/_api.py:9 < h@x.py:3", "TP0", sample)
        for sample, line in enumerate((5, 7, 6))
    ]
    (found,) = merge(dumps)
    assert not found.moving


def test_ranks_without_a_stack_are_listed_with_the_reason() -> None:
    dead = StackDump(9, "TP5", Role.WORKER, 0.0, missing=(Missing("stack", ZOMBIE.why),))
    denied = [StackDump(10 + n, f"TP{n}", Role.WORKER, 0.0, error="not permitted") for n in (6, 7)]
    dumps = [recorded("load_tp0_barrier.json", rank) for rank in RANKS[:5]]
    classes = merge([*dumps, dead, *denied])
    assert [(found.ranks, found.outlier, found.note) for found in classes[:2]] == [
        (("TP5",), True, ZOMBIE.why),
        (("TP6", "TP7"), False, "not permitted"),
    ]
    assert heading(classes) == "[TP0-4] | missing TP5 | no stack of TP6-7"
    assert "TP6-7 · 2 ranks · not permitted" in list(class_lines(classes))


def test_only_refusals() -> None:
    (found,) = merge([StackDump(n, f"TP{n}", Role.WORKER, 0.0, error="not permitted") for n in range(3)])
    assert (found.ranks, found.outlier) == (("TP0", "TP1", "TP2"), False)
    assert merge([]) == ()


def test_a_sample_that_failed_does_not_hide_the_others() -> None:
    good = recorded("load_tp0_barrier.json", "TP0", 0)
    (found,) = merge([good, replace(good, threads=(), error="torn", sample=1)])
    assert found.frames


def test_launcher_and_detokenizer_are_no_ranks() -> None:
    others = [
        recorded("launcher_waits.json", "", role=Role.LAUNCHER, pid=1),
        recorded("detokenizer.json", "", role=Role.DETOKENIZER, pid=2),
    ]
    (found,) = merge([*others, recorded("load_tp0_barrier.json", "")])
    assert found.ranks == ("",)
    assert len(merge(others)) == 2  # nothing else there: then they are shown


def test_the_majority_is_folded_on_paper() -> None:
    dumps = [recorded("load_tp0_barrier.json", rank) for rank in RANKS[1:]] + [recorded("weights_loader.json", "TP0")]
    classes = merge(dumps)
    lines = list(class_lines(classes))
    assert lines[0] == "[TP1-7] | missing TP0"
    assert "OUTLIER" in lines[2]
    assert any("(--full)" in line for line in lines)
    assert not any("(--full)" in line for line in class_lines(classes, full=True))


def test_tree_of_the_pair() -> None:
    root = tree([recorded("capture_tp0_synchronize_a.json", "TP0"), recorded("capture_tp1_barrier_a.json", "TP1")])
    lines = list(tree_lines(root))
    assert lines[0].startswith("[TP0-1] run_scheduler_process > ")
    assert lines[1] == "  [TP0] synchronize   <- TP0"
    assert lines[2].endswith("barrier   <- TP1")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(RANKS), st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), st.integers(0, 2)
        ),
        max_size=24,
    )
)
@settings(max_examples=60, deadline=None)
def test_every_rank_once(stacks: list[tuple[str, list[str], int]]) -> None:
    dumps = [made(" < ".join(f"{name}@x.py" for name in path), rank, sample) for rank, path, sample in stacks]
    classes = merge(dumps)
    ranks = [rank for found in classes for rank in found.ranks]
    assert sorted(ranks) == sorted({rank for rank, _, _ in stacks})
    assert all(found.frames for found in classes)
    assert not classes or not all(found.outlier for found in classes)
    root = tree(dumps)
    assert set(root.ranks) == set(ranks)
    assert list(tree_lines(root)) or not dumps
