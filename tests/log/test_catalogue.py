"""What SGLang's catalogue holds."""

from __future__ import annotations

import pytest

from sgmon.analyse.log.catalogue import of, version_key
from sgmon.servers.sglang.log import RULES

CATALOGUE = of(RULES)


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
