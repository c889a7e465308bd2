"""Which command lines start a vLLM server, what their arguments say, what titles mean."""

from __future__ import annotations

import pytest

from sgmon.model import Role
from sgmon.servers import registry
from sgmon.servers.vllm.args import full_name, parse
from sgmon.servers.vllm.args_line import last_in, parse_args_line
from sgmon.servers.vllm.launch import recognise
from sgmon.servers.vllm.server_args import from_launch, from_mapping
from sgmon.servers.vllm.titles import rank_of, role_of, role_of_comm

SERVERS = {
    "python3 /opt/vllm/site/bin/vllm serve m/4b --max-model-len 8192 -tp 2 --port 31040": ("serve", "m/4b", 31040),
    "/opt/vllm/venv/bin/python /opt/vllm/venv/bin/vllm serve models/tiny": ("serve", "models/tiny", 8000),
    "vllm serve m --port 9": ("serve", "m", 9),
    "python -m vllm.entrypoints.openai.api_server --model m": ("module", "m", 8000),
    "python3 -u -m vllm.entrypoints.openai.api_server --model=m --port=1": ("module", "m", 1),
    "python -m vllm.entrypoints.cli.main serve m": ("serve", "m", 8000),
    "python -m vllm.scripts serve m": ("serve", "m", 8000),
    "python3 /src/vllm/entrypoints/openai/api_server.py --model m": ("module", "m", 8000),
    "python /src/vllm/entrypoints/cli/main.py serve --model m": ("serve", "m", 8000),
    "vllm launch render m": ("render", "m", 8000),
    "vllm serve m --headless -n 2 -r 1": ("serve", "m", 8000),
}
NO_SERVERS = [
    "vllm bench serve --model m",
    "vllm chat",
    "vllm --help",
    "python -m vllm.model_executor.models.registry",
    "timeout 60 vllm-serve m",
    "bash -c vllm serve m",
    "tail -f vllm serve.log",
    "python -m pytest vllm.entrypoints.openai.api_server",
    "VLLM::EngineCore",
    "VLLM::Worker_TP0",
    "",
]


@pytest.mark.parametrize("line", SERVERS)
def test_a_server(line):
    family, launch = registry.recognise(tuple(line.split()))
    args = from_launch(launch, lambda path: {})
    assert (family.name, launch.form, args.model_path, args.port) == ("vllm", *SERVERS[line])


@pytest.mark.parametrize("line", NO_SERVERS)
def test_no_server(line):
    assert recognise(tuple(line.split())) is None


@pytest.mark.parametrize(
    "line",
    [
        "m -tp 2 -pp 4 -dp 8 --port 1",
        "m --tensor-parallel-size 2 --pipeline-parallel-size=4 --data-parallel-size 8 --port 1",
        "m --tensor 2 --pipe 4 --data_parallel_size 8 --port 2 --port 1",
        "--enable-prefix-caching m -tp=2 -pp=4 -dp=8 --port 1",
        "--no-enable-prefix-caching m -tp 2 -pp 4 -dp 8 --port 1",
        "-O3 -tp 2 -pp 4 -dp 8 --port 1 --model m",
        "-ep -tp 2 -pp 4 -dp 8 --port 1 --model m",
    ],
)
def test_spellings(line):
    seen = from_mapping(parse(tuple(line.split()), serve=True))
    assert (seen.tp, seen.pp, seen.dp, seen.model_path, seen.port) == (2, 4, 8, "m", 1)


def test_what_a_monitor_needs():
    line = "m --headless -n 2 -r 1 --master-addr 10.0.0.1 --master-port 7 --enforce-eager -asc 3 --uds /run/v.sock"
    seen = from_mapping(parse((*line.split(), "--api-key", "s3cret", "--ssl-keyfile", "k"), serve=True))
    assert (seen.headless, seen.nnodes, seen.node_rank, seen.dist_init_addr) == (True, 2, 1, "10.0.0.1:7")
    assert seen.disable_cuda_graph and seen.api_servers == 3 and seen.uds == "/run/v.sock" and seen.ssl
    assert "api_key" in dict(seen.raw) and "s3cret" not in repr(seen)
    assert full_name("--hf-tok") == "hf_token" and registry.is_secret_flag("--hf-tok")


def test_the_line_with_the_arguments():
    new = (
        "(APIServer pid=7) INFO 11-29 22:55:06 [utils.py:278] non-default args: {'model_tag': 'm/4b', 'port': 31040, "
    )
    new += "'tensor_parallel_size': 2, 'api_key': ['s3cret']}\n"
    seen = last_in("x\n" + new)
    assert seen is not None and (seen.model_path, seen.port, seen.tp) == ("m/4b", 31040, 2)
    assert "s3cret" not in repr(seen)
    old = parse_args_line(
        "INFO 11-29 12:00:00 [api_server.py:9] args: Namespace(host=None, port=8000, model='m', x=<f>)"
    )
    assert old is not None and (old.model_path, old.host, old.port) == ("m", "0.0.0.0", 8000)
    assert parse_args_line("args: none") is None and last_in(new.rstrip()) is None


@pytest.mark.parametrize(
    ("title", "role", "rank"),
    [
        ("VLLM::EngineCore", Role.ENGINE, ""),
        ("VLLM::EngineCore_DP1", Role.ENGINE, "DP1"),
        ("VLLM::DPEngineCore_1", Role.ENGINE, "DP1"),
        ("VLLM::Worker", Role.WORKER, ""),
        ("VLLM::Worker_TP1", Role.WORKER, "TP1"),
        ("VLLM::Worker_DP0_PP1_TP2_EP5", Role.WORKER, "DP0 PP1 TP2"),
        ("VLLM::Worker_PCP1_TP0_DCP1", Role.WORKER, "PCP1 TP0 DCP1"),
        ("my-service::Worker_TP1", Role.WORKER, "TP1"),
        ("VLLM::DPCoordinator", Role.CONTROLLER, ""),
        ("VLLM::APIServer_1", Role.API_SERVER, ""),
        ("VLLM::APIServer_DP1", Role.API_SERVER, ""),
        ("ray::RayWorkerWrapper.execute_method", Role.WORKER, ""),
        ("ray::RayWorkerProc", Role.WORKER, ""),
        ("ray::IDLE", Role.OTHER, ""),
        ("sglang::scheduler_TP0", Role.OTHER, ""),
        ("VLLM::WorkerX", Role.OTHER, ""),
    ],
)
def test_titles(title, role, rank):
    assert (role_of((title,)), rank_of(title)) == (role, rank)


@pytest.mark.parametrize(
    ("comm", "role"),
    [
        ("VLLM::EngineCor", Role.ENGINE),
        ("VLLM::Worker_TP", Role.WORKER),
        ("VLLM::DPCoordin", Role.CONTROLLER),
        ("VLLM::APIServer", Role.API_SERVER),
        ("VLLM::ApiServer", Role.API_SERVER),
        ("python3", Role.OTHER),
        ("sglang::schedul", Role.OTHER),
    ],
)
def test_a_zombies_name(comm, role):
    assert role_of_comm(comm) == role
