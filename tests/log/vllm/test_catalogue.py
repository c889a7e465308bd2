from __future__ import annotations

import pytest

from sgmon.analyse.log.catalogue import Rule, of
from sgmon.analyse.log.lines import describe
from sgmon.analyse.log.shapes import announced, hot_lines
from sgmon.servers.vllm import FAMILY
from sgmon.servers.vllm.log import RULES

rules = of(RULES).rules
MILESTONES = [rule for rule in rules if rule.group == "milestone"]
ERRORS = [rule for rule in rules if rule.group == "error"]
NOISE = [rule for rule in rules if rule.group == "noise"]


def applies(rule: Rule, text: str) -> bool:
    return any(key in text for key in rule.keys) and rule.search(text) is not None


@pytest.mark.parametrize("group", [MILESTONES, ERRORS, NOISE], ids=["milestone", "error", "noise"])
def test_each_rule_matches_its_own_example_and_none_of_another_name(group: list[Rule]) -> None:
    wrong = [
        (rule.name, other.example[:80])
        for rule in group
        for other in group
        if applies(rule, other.example) != (rule is other) and (rule is other or rule.name != other.name)
    ]
    assert wrong == []


@pytest.mark.parametrize("rule", rules, ids=lambda rule: f"{rule.group}-{rule.name[:30]}")
def test_the_search_by_chunk_finds_what_the_search_by_line_finds(rule: Rule) -> None:
    text = f"before\n{rule.example}\nafter\n"
    found = {index: rules for index, rules, _ in hot_lines(RULES, text, text.split("\n"))}
    assert rule in found[1]
    assert rule in announced(RULES, rule.example)


@pytest.mark.parametrize("rule", MILESTONES, ids=lambda rule: rule.name)
def test_a_milestone_has_a_phase_of_the_family_and_is_described_as_one(rule: Rule) -> None:
    assert FAMILY.phases.order(rule.phase) >= 0
    line = describe(1, rule.example, RULES)
    assert line.milestone == rule.name or rule.name in ("launch", "shutdown")


@pytest.mark.parametrize("rule", ERRORS, ids=lambda rule: rule.name)
def test_an_error_is_described_as_error(rule: Rule) -> None:
    assert describe(1, rule.example, RULES).kind == ("warning" if rule.grade == "notice" else "error")


@pytest.mark.parametrize("rule", NOISE, ids=lambda rule: rule.name[:30])
def test_noise_is_no_finding(rule: Rule) -> None:
    line = describe(1, rule.example, RULES)
    assert line.kind in ("noise", "milestone")
    assert line.level not in ("warning", "error")
