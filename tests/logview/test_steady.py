"""The quick description of frequent lines says what the full one says."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon.analyse.log.lines import describe
from sgmon.analyse.log.steady import SteadyLines
from sgmon.servers.family import LogRules
from sgmon.servers.sglang.log import RULES
from sgmon.servers.vllm.log import RULES as VLLM

quick = SteadyLines(partial(describe, log=RULES), RULES)
number = st.integers(0, 99_999)
rank = st.sampled_from(["", " TP0", " TP7", " DP1 TP3", " TP2 EP2", " PP0 TP1"])
batch = st.builds(
    "{} batch, #new-seq: {}, #new-token: {}, #cached-token: {}, token usage: 0.{}, #running-req: {}, cuda graph: {}".format,
    st.sampled_from(["Prefill", "Decode"]),
    st.integers(1, 3),
    st.integers(1, 12),
    number,
    number,
    number,
    st.booleans(),
)
decode = st.builds(
    "Decode batch, #running-req: {}, #token: {}, token usage: 0.{}, gen throughput (token/s): {}.24, #queue-req: {}".format,
    number,
    number,
    number,
    number,
    number,
)
access = st.builds(
    'INFO:     127.0.0.1:{} - "{} {} HTTP/1.1" {}'.format,
    number,
    st.sampled_from(["GET", "POST"]),
    st.sampled_from(
        ["/health", "/health_generate", "/generate", "/v1/models", "/get_model_info", "/x?api_key=secret123"]
    ),
    st.sampled_from(["200 OK", "503 Service Unavailable", "404 Not Found"]),
)
other = st.sampled_from(
    [
        "Prefill batch failed: ValueError",
        "Decode batch, api_key: hunter2hunter2",
        "Load weight begin. avail mem=138.31 GB",
        "Decode batch, #running-req: 1\x1b[31m",
        "The server is fired up and ready to roll!",
    ]
)


@pytest.mark.parametrize(
    ("text", "rules", "kind"),
    [
        (
            "[2026-01-29 13:20:25 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 8, #running-req: 3",
            RULES,
            "",
        ),
        ('[2026-01-29 13:20:25] INFO:     10.0.0.1:53594 - "POST /v1/completions HTTP/1.1" 200 OK', RULES, "access"),
        ('(APIServer pid=1) INFO:     10.0.0.1:5359 - "POST /v1/completions HTTP/1.1" 200 OK', VLLM, "access"),
        (
            "(APIServer pid=1) INFO 11-29 16:05:41 [loggers.py:257] Engine 000: Avg prompt throughput: 12.3 tokens/s, "
            "Avg generation throughput: 5.0 tokens/s, Running: 2 reqs, Waiting: 0 reqs",
            VLLM,
            "",
        ),
        ("[2026-01-29 13:14:30] The server is fired up and ready to roll!", RULES, "milestone"),
    ],
)
def test_a_line_of_serving_is_shown_as_no_milestone(text: str, rules: LogRules, kind: str) -> None:
    """It only tells that the start is over, where the text begins later."""
    line = describe(7, text, rules)
    assert (line.kind, line.milestone) == (kind, "ready" if kind == "milestone" else "")


@given(rank, st.one_of(batch, decode, access, other))
@settings(max_examples=400, deadline=None)
def test_quick_is_full(rank: str, body: str) -> None:
    text = f"[2026-11-29 16:05:41{rank}] {body}"
    for _ in range(2):
        assert quick(7, text) == describe(7, text, RULES)
