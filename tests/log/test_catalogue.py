from __future__ import annotations

import pytest

from sgmon.analyse.log.catalogue import Rule, of, version_key
from sgmon.analyse.log.lines import describe
from sgmon.analyse.log.shapes import announced, hot_lines
from sgmon.servers.sglang.log import RULES

CATALOGUE = of(RULES)
rules = CATALOGUE.rules

MILESTONES = [rule for rule in rules if rule.group == "milestone"]
ERRORS = [rule for rule in rules if rule.group == "error"]
NOISE = [rule for rule in rules if rule.group == "noise"]


def applies(rule: Rule, text: str) -> bool:
    return any(key in text for key in rule.keys) and rule.search(text) is not None


@pytest.mark.parametrize("group", [MILESTONES, ERRORS, NOISE], ids=["milestone", "error", "noise"])
def test_each_rule_matches_its_own_example_and_no_other(group: list[Rule]) -> None:
    wrong = [
        (rule.name, other.example[:80])
        for rule in group
        for other in group
        if applies(rule, other.example) != (rule is other)
    ]
    assert wrong == []


@pytest.mark.parametrize("rule", rules, ids=lambda rule: f"{rule.group}-{rule.name[:30]}")
def test_the_search_by_chunk_finds_what_the_search_by_line_finds(rule: Rule) -> None:
    text = f"before\n{rule.example}\nafter\n"
    found = {index: rules for index, rules, _ in hot_lines(RULES, text, text.split("\n"))}
    assert rule in found[1]
    assert rule in announced(RULES, rule.example)


@pytest.mark.parametrize("rule", ERRORS, ids=lambda rule: rule.name)
def test_an_error_is_described_as_error(rule: Rule) -> None:
    wanted = "warning" if rule.grade == "notice" else "error"
    assert describe(1, rule.example, RULES).kind == wanted


@pytest.mark.parametrize("rule", MILESTONES, ids=lambda rule: rule.name)
def test_a_milestone_is_described_as_milestone(rule: Rule) -> None:
    line = describe(1, rule.example, RULES)
    assert line.milestone == rule.name or rule.name in ("launch", "load_end", "warmup_failed", "shutdown")


@pytest.mark.parametrize("rule", NOISE, ids=lambda rule: rule.name[:30])
def test_noise_is_no_finding(rule: Rule) -> None:
    line = describe(1, rule.example, RULES)
    assert line.kind in ("noise", "milestone")
    assert line.level not in ("warning", "error")


def test_the_words_of_the_architecture_are_there() -> None:
    wanted = {
        *("launch", "args", "process_spawn", "dp_launch", "tokenizer_init", "dist_init_begin", "gloo_connected"),
        *("nccl_comm", "nccl_init_complete", "custom_ar", "custom_ar_disabled", "custom_ar_failed", "mq_connect"),
        *("first_collective", "dist_init_end", "load_begin", "weights_format", "load_end", "kv_profile", "kv_alloc"),
        *("memory_pool_end", "graph_begin", "graph_end", "scheduler_ready", "http_start", "http_up"),
        *("warmup_request", "warmup_failed", "ready"),
    }
    assert wanted <= set(CATALOGUE.names())


@pytest.mark.parametrize(
    ("version", "milestone", "rank", "silent"),
    [
        ("0.4.5.post3", "load_end", "TP3", False),
        ("0.4.6.post5", "load_end", "TP3", True),
        ("0.4.6.post5", "load_end", "TP0", False),
        ("0.5.2", "memory_pool_end", "TP1", True),
        ("0.5.3.post3", "memory_pool_end", "TP1", False),
        ("0.5.2", "kv_alloc", "TP7", False),  # memory_pool's logger was never filtered
        ("0.5.23", "kv_alloc", "TP7", False),
        ("0.5.23", "dist_init_begin", "TP7", False),
        ("0.5.1", "dist_init_begin", "TP7", True),
        ("0.4.4", "scheduler_ready", "TP7", False),
        ("0.5.23", "scheduler_ready", "TP7", True),
        ("0.5.23", "nccl_comm", "TP7", True),
        ("0.5.23", "weights_progress", "TP7", True),
        ("0.5.9", "graph_begin", "TP7", False),
        ("0.5.1", "graph_begin", "TP7", True),
        ("", "load_end", "TP1", True),  # unknown version: no claim
        ("0.5.23", "ready", "TP0", True),
        ("0.5.23", "draft_load_end", "TP1", False),
    ],
)
def test_who_may_be_silent(version: str, milestone: str, rank: str, silent: bool) -> None:
    assert CATALOGUE.silent_by_design(version, milestone, rank) is silent


def test_versions_in_order() -> None:
    found = [version_key(v) for v in ("0.4.6.post5", "0.4.10", "0.5.2", "0.5.2.post1", "0.5.23")]
    assert None not in found
    assert found == sorted(found, key=lambda key: key or ())
    assert version_key("torch") is None
