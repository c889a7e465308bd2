"""Each rule of each catalogue against its own example and those of the others."""

from __future__ import annotations

from typing import Any

import pytest

from sgmon.analyse.log.catalogue import Rule, of
from sgmon.analyse.log.lines import describe
from sgmon.analyse.log.shapes import announced, hot_lines
from sgmon.servers import sglang, vllm
from sgmon.servers.family import ServerFamily

FAMILIES = (sglang.FAMILY, vllm.FAMILY)
GROUPS = ("milestone", "error", "noise")
#: families in which several rules of one name may match one line
_SAME_NAME = frozenset({"vllm"})
#: begins of the names of milestones that any phase may have
_ANY_PHASE: dict[str, tuple[str, ...]] = {"sglang": ("jit_", "shutdown"), "vllm": ()}
#: milestones that a line of another kind shows, or that several lines pass
_ELSEWHERE = {"sglang": {"launch", "load_end", "warmup_failed", "shutdown"}, "vllm": {"launch", "shutdown"}}


def each(group: str = "") -> list[Any]:
    """A parameter for every rule of every family, or of one group."""
    return [
        pytest.param(family, rule, id=f"{family.name}-{rule.group}-{rule.name[:30]}")
        for family in FAMILIES
        for rule in of(family.log).rules
        if group in ("", rule.group)
    ]


def applies(rule: Rule, text: str) -> bool:
    return any(key in text for key in rule.keys) and rule.search(text) is not None


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_rule_matches_its_own_example_and_none_of_another_name(family: ServerFamily, group: str) -> None:
    rules = [rule for rule in of(family.log).rules if rule.group == group]
    wrong = [
        (rule.name, other.example[:80])
        for rule in rules
        for other in rules
        if applies(rule, other.example) != (rule is other)
        and (rule is other or rule.name != other.name or family.name not in _SAME_NAME)
    ]
    assert wrong == []


@pytest.mark.parametrize(("family", "rule"), each())
def test_the_search_by_chunk_finds_what_the_search_by_line_finds(family: ServerFamily, rule: Rule) -> None:
    text = f"before\n{rule.example}\nafter\n"
    found = {index: rules for index, rules, _ in hot_lines(family.log, text, text.split("\n"))}
    assert rule in found[1]
    assert rule in announced(family.log, rule.example)


@pytest.mark.parametrize(("family", "rule"), each("milestone"))
def test_a_milestone_has_a_phase_of_the_family_and_is_described_as_one(family: ServerFamily, rule: Rule) -> None:
    if rule.phase or not rule.name.startswith(_ANY_PHASE[family.name]):
        assert family.phases.order(rule.phase) >= 0
    said = describe(1, rule.example, family.log).milestone
    assert said == (rule.name if rule.is_shown else "") or rule.name in _ELSEWHERE[family.name]


@pytest.mark.parametrize(("family", "rule"), each("error"))
def test_an_error_is_described_as_error(family: ServerFamily, rule: Rule) -> None:
    wanted = "warning" if rule.grade == "notice" else "error"
    assert describe(1, rule.example, family.log).kind == wanted


@pytest.mark.parametrize(("family", "rule"), each("noise"))
def test_noise_is_no_finding(family: ServerFamily, rule: Rule) -> None:
    line = describe(1, rule.example, family.log)
    assert line.kind in ("noise", "milestone")
    assert line.level not in ("warning", "error")
