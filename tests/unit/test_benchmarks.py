"""The table of ``python -m benchmarks``: rows, budgets, and the page that keeps what others wrote on it."""

from __future__ import annotations

import pytest

from benchmarks import page
from benchmarks.registry import Group, Options, Row, budgets, chosen, groups, in_turns
from benchmarks.rounds import run


def test_every_row_has_a_budget_and_every_budget_a_row():
    names = [row.name for group in groups() for row in group.rows]
    assert len(set(names)) == len(names)
    assert set(names) == set(budgets())


def test_rows_are_chosen_by_the_beginning_of_their_names():
    assert [group.name for group, _ in chosen(["follow-10000"])] == ["follow-10000"]
    assert [row.name for _, rows in chosen(["open:sgmon:tl:s"]) for row in rows] == ["open:sgmon:tl:s"]
    with pytest.raises(ValueError, match="no row begins with 'fast'"):
        list(chosen(["fast"]))


def test_a_row_is_the_median_of_the_ratios_of_its_rounds():
    values = iter([(9.0, 1.0), (2.0, 1.0), (30.0, 10.0), (8.0, 2.0)])  # the first round is not counted

    class Prepared:
        def __enter__(self):
            def measure():
                ours, peer = next(values)
                return in_turns({"a": lambda: {"s": ours}, "b": lambda: {"s": peer}})()

            return measure

        def __exit__(self, *error):
            return None

    row, lost = Row("g", "a", "b", "s"), Row("g", "a", "c", "s")
    found, without = run(Group("g", "", (row, lost), lambda options: Prepared(), rounds=3), (row, lost), Options())
    assert (found.ratio, found.low, found.high, found.rounds) == (3.0, 2.0, 4.0, 3)
    assert without.ratio is None and "c: no value" in without.why
    assert [page.word(found.ratio, most) for most in (3.0, 2.9, None)] == ["pass", "MISS", "no budget"]


def test_the_page_keeps_what_is_written_by_hand(tmp_path):
    path = tmp_path / "benchmarks.md"
    path.write_text(f"# Benchmarks\n\nwords\n\n{page.BEGIN}\nold\n{page.END}\n\n## Soak\n\ntheirs\n")
    page.write({}, path)
    text = path.read_text()
    assert text.startswith("# Benchmarks\n\nwords\n") and text.endswith("## Soak\n\ntheirs\n") and "old" not in text
