from __future__ import annotations

import pytest

from sgmon.servers.registry import is_secret_flag
from sgmon.servers.sglang.args import full_name, parse
from sgmon.servers.sglang.server_args import from_mapping
from sgmon.text import masked_argv


def args(line: str, **kw):
    return from_mapping(parse(tuple(line.split()), **kw))


@pytest.mark.parametrize(
    "line",
    [
        "--tp-size 8 --dp-size 2 --pp-size 4 --model-path m --port 31000",
        "--tensor-parallel-size 8 --data-parallel-size 2 --pipeline-parallel-size 4 --model m --port 31000",
        "--tp 8 --dp 2 --pp 4 --model m --po 31000",
        "--tp=8 --dp-size=2 --pp-s=4 --model-p=m --port=31000",
        "--tensor 8 --data 2 --pipe 4 --model-path m --port 1 --port 31000",
        "--tp_size 8 --dp_size 2 --pp_size 4 --model_path m --port 31000",
    ],
)
def test_spellings(line):
    seen = args(line)
    assert (seen.tp, seen.dp, seen.pp, seen.model_path, seen.port) == (8, 2, 4, "m", 31000)


def test_abbreviations_that_mean_two_things_stay_as_they_are():
    assert full_name("--dis") == "dis"
    assert full_name("--node") == "node_rank"
    assert full_name("--nn") == "nnodes"
    assert full_name("--log-level-h") == "log_level_http"
    assert full_name("--log-level") == "log_level"
    assert full_name("--disable-cuda-graph") == "disable_cuda_graph"
    assert full_name("--disable-cuda-graph-padding") == "disable_cuda_graph_padding"


def test_switches_take_no_value():
    seen = parse(("--skip-server-warmup", "--enable-metrics", "--disable-cuda-graph", "--tp", "2"))
    assert seen == {
        "skip_server_warmup": True,
        "enable_metrics": True,
        "disable_cuda_graph": True,
        "tp_size": "2",
    }


def test_negative_numbers_and_lists_are_values():
    seen = parse(("--gpu-id-step", "-1", "--cuda-graph-bs", "1", "2", "4", "--port", "1"))
    assert (seen["gpu_id_step"], seen["cuda_graph_bs"], seen["port"]) == ("-1", "1 2 4", "1")


@pytest.mark.parametrize(
    "line",
    ["org/m --tp 2", "--tp 2 org/m", "--enable-metrics org/m --tp 2", "--trust-remote-code org/m", "--foo 3 org/m"],
)
def test_the_model_as_a_bare_word(line):
    assert args(line, serve=True).model_path == "org/m"


def test_bare_words_mean_nothing_to_launch_server():
    assert args("org/m --tp 2").model_path == ""


def test_config_gives_way_to_the_command_line():
    seen = []

    def config(path):
        seen.append(path)
        return {"tp-size": 4, "port": 31005, "enable-dp-attention": True, "tensor_parallel_size": 4}

    found = args("--config c.yaml --port 31006", config=config)
    assert (found.tp, found.port, found.dp_attention) == (4, 31006, True)
    assert seen == ["c.yaml"]


def test_secrets_are_masked():
    argv = (
        "python",
        "-m",
        "sglang.launch_server",
        "--api-key",
        "s3cret",
        "--admin-api-key=s3cret",
        "--api-k",
        "s3cret",
    )
    shown = " ".join(
        masked_argv((*argv, "--ssl-keyfile-password", "s3cret", "--max-total-tokens", "4096"), is_secret_flag)
    )
    assert "s3cret" not in shown and "4096" in shown
    seen = from_mapping(parse(argv[3:]))
    assert "api_key" in dict(seen.raw) and "s3cret" not in repr(seen)
    assert "hunter2" not in " ".join(masked_argv(("x", "--dist-init-addr", "http://me:hunter2@host:1")))
    assert masked_argv(("a\x1b[31mb\nc",)) == ("ab c",)


def test_odd_input():
    assert parse(("--",)) == {"": True}
    assert parse(("-",)) == {}
    assert args("--port x --tp").port == 30000
    assert args("--port 99999999").port == 30000
