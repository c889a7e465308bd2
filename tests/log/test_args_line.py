from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmon.servers.sglang.args_line import parse_server_args
from sgmon.servers.sglang.server_args import from_mapping

CALL = "[2026-01-29 13:12:36] server_args=ServerArgs(model_path='m/x, (y)', port=31000, tp_size=4, dp_size=2, nnodes=2, node_rank=1, api_key='sk-secretsecretsecret', json_model_override_args='{\"a\": [1, 2]}', max_total_tokens=7, enable_dp_attention=True, dist_timeout=None, host='0.0.0.0', hooks=[Hook(a=1, b='x,y')], speculative_algorithm='EAGLE', disaggregation_mode='null', skip_server_warmup=True)"
DICT = "[2026-01-29 13:12:36] server_args={'model_path': 'm/x, (y)', 'port': 31000, 'tp_size': 4, 'dp_size': 2, 'nnodes': 2, 'node_rank': 1, 'api_key': 'sk-secretsecretsecret', 'json_model_override_args': '{\"a\": [1, 2]}', 'max_total_tokens': 7, 'enable_dp_attention': True, 'dist_timeout': None, 'host': '0.0.0.0', 'hooks': [<Hook: 'a'>], 'speculative_algorithm': 'EAGLE', 'disaggregation_mode': 'null', 'skip_server_warmup': True}"


@pytest.mark.parametrize("line", [CALL, DICT], ids=["call", "dict"])
def test_both_forms(line: str) -> None:
    args = parse_server_args(line)
    assert args is not None
    assert (args.model_path, args.port, args.tp, args.dp, args.nnodes, args.node_rank) == (
        "m/x, (y)",
        31000,
        4,
        2,
        2,
        1,
    )
    assert (args.host, args.dp_attention, args.skip_server_warmup) == ("0.0.0.0", True, True)
    assert (dict(args.raw)["speculative_algorithm"], args.disaggregation_mode, args.dist_timeout_s) == (
        "EAGLE",
        "",
        None,
    )
    assert "api_key" in dict(args.raw)
    raw = dict(args.raw)
    assert raw["api_key"] == "********"
    assert raw["max_total_tokens"] == "7"
    assert "secretsecret" not in repr(args)


@pytest.mark.parametrize("line", [CALL, DICT], ids=["call", "dict"])
@given(data=st.data())
def test_a_cut_line_gives_what_is_whole(line: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(60, len(line)))
    args = parse_server_args(line[:at])
    assert args is None or (args.model_path in ("m/x, (y)", "") and args.tp in (1, 4))
    assert "secretsecret" not in repr(args)


def test_no_line() -> None:
    assert parse_server_args("[2026-01-29 13:12:36] hello") is None


def test_names_in_any_spelling() -> None:
    args = from_mapping({"--tp-size": "8", "pipeline_parallel_size": 2, "--ssl-certfile": "a.pem", "--dp-size": "x"})
    assert (args.tp, args.pp, args.dp, args.ssl) == (8, 2, 1, True)


def test_attention_replicas_of_newer_versions() -> None:
    args = from_mapping({"attn_dp_size": 4, "dp_size": 1})
    assert (args.dp, args.dp_attention) == (4, True)
