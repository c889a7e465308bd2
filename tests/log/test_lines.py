from __future__ import annotations

import pytest

from sgmon.analyse.log.lines import describe
from sgmon.analyse.log.prefix import origin
from sgmon.servers.sglang.log import RULES, canonical_rank

DATED = [
    ("[2026-01-29 13:12:36] hello", "", "hello"),
    ("[2026-01-29 13:12:36.123 DP1 PP0 TP3] hello", "DP1 PP0 TP3", "hello"),
    ("[2026-01-29 13:12:36 TP0 EP0] hello", "TP0", "hello"),
    ("2025-04-13 14:53:38 INFO 511 [pynccl.py:78] hello", "pid 511", "hello"),
    ("2025-06-25 11:25:58,633 - INFO - hello", "", "hello"),
]
UNDATED = [
    ("[rank3]:[E421 04:13:43.426633564 ProcessGroupGloo.cpp:143] hello", "rank3", "hello"),
    ("host-a:273:273 [3] NCCL INFO hello", "TP3", None),
    ("I0820 02:41:20.446154 710 transfer_engine.cpp:422] hello", "", "hello"),
    ("[gpu=1] hello", "gpu=1", "hello"),
    ("Rank 1: load weight begin.", "Rank 1", "load weight begin."),
    ("[01:40:11 TP1] hello", "TP1", "hello"),
    ("[12-16 14:27:08] hello", "", "hello"),
    ("INFO 02-19 15:51:07 weight_utils.py:164] hello", "", "hello"),
    ("hello", "", "hello"),
    ("", "", ""),
]


@pytest.mark.parametrize(("text", "rank", "body"), DATED + UNDATED)
def test_prefixes(text: str, rank: str, body: str | None) -> None:
    found = origin(text, RULES)
    assert found.rank == rank
    if body is not None:
        assert text[found.body :] == body
    assert (found.t is not None) is ((text, rank, body) in DATED)


def test_rank_tokens_stay_in_their_order() -> None:
    assert canonical_rank(" DP0 ATTN_CP1 TP3 EP3") == "DP0 ATTN_CP1 TP3"
    assert canonical_rank("EP1") == "EP1"


@pytest.mark.parametrize(
    ("text", "kind", "level"),
    [
        ('[2026-01-29 13:14:25] INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 200 OK', "access", "info"),
        ("  File \"x.py\", line 1, in f", "traceback", ""),
        ("Traceback (most recent call last):", "traceback", ""),
        ("ValueError: no", "error", "error"),
        ("[2026-01-29 13:14:25 TP1] Scheduler hit an exception: Traceback (most recent call last):", "error", "error"),
        ("Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<00:00,  6.52it/s]", "bar", ""),
        ("[2026-01-29 13:14:25] WARNING:  x", "warning", "warning"),
        ("[2026-01-29 13:14:25] Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit", "noise", ""),
        ("[2026-01-29 13:14:25] hello", "", ""),
        ("[2026-01-29 13:14:25 TP0] Init parallel begin.", "milestone", ""),
    ],
)  # fmt: skip
def test_kinds(text: str, kind: str, level: str) -> None:
    line = describe(7, text, RULES)
    assert (line.number, line.kind, line.level) == (7, kind, level)


def test_the_newest_frame_of_a_line_of_bars() -> None:
    line = describe(
        1,
        "\rMulti-thread loading shards:  20% Completed | 1/5 [\rMulti-thread loading shards:  40% Completed | 2/5 [\r",
        RULES,
    )
    assert line.text.startswith("Multi-thread loading shards:  40%")
    assert line.kind == "bar"


def test_secrets_and_escapes_stay_out() -> None:
    line = describe(
        1, "\x1b[31mserver_args={'api_key': 'sk-abcdefabcdefabcdef', 'tp_size': 2}\x1b]0;title\x07", RULES
    )
    assert "\x1b" not in line.text
    assert "abcdefabcdef" not in line.text


@pytest.mark.parametrize(
    "text",
    [
        "server_args={'tp_size': 2, 'api_key': 'hunter2hunter",  # cut to a pipe
        "max_total_num_token api_key='hunter2hunter2'",
        "max_tokens: api_key=hunter2hunter2",
        "--api-key hunter2hunter2",
        "x api_key='hunter2hunter2' 33%|##| 1/3 [00:01<00:02]",
    ],
)
def test_a_secret_is_found_in_torn_text(text: str) -> None:
    assert "hunter2" not in describe(1, text, RULES).text
