"""Real starts of vLLM that are lost from the beginning: the second of the warning, and the second of the failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real import lost
from tests.real.server import copy_model, free_port
from tests.real.vllm.server import HOME, vllm_server
from tests.real.watching import watching


@pytest.mark.parametrize("rule", lost.DAMAGES)
def test_a_model_that_cannot_be_loaded(tmp_path: Path, rule: str) -> None:
    folder = copy_model("tiny", tmp_path / "model", HOME)
    lost.DAMAGES[rule](folder)
    _is_lost(tmp_path, rule, str(folder))


def test_the_port_is_held(tmp_path: Path) -> None:
    with lost.held_port(free_port(), "0.0.0.0") as port:
        _is_lost(tmp_path, "port", "tiny", port=port)


def test_heads_that_cannot_be_divided(tmp_path: Path) -> None:
    _is_lost(tmp_path, "heads", "tiny", "-tp", "3")


def test_expert_parallelism_of_a_dense_model(tmp_path: Path) -> None:
    _is_lost(tmp_path, "experts", "tiny", "--enable-expert-parallel")


def test_a_host_that_cannot_be_resolved(tmp_path: Path) -> None:
    _is_lost(tmp_path, "unresolved", "tiny", "--host", "nowhere.invalid")


def test_an_address_that_is_not_this_machine_s(tmp_path: Path) -> None:
    _is_lost(tmp_path, "address", "tiny", "--host", "192.0.2.7")


def test_the_rendezvous_port_is_held(tmp_path: Path) -> None:
    with lost.held_port(20881) as port:
        flags = ("-tp", "2", "--nnodes", "2", "--node-rank", "0", "--master-addr", "127.0.0.1")
        _is_lost(tmp_path, "rendezvous-port", "tiny", *flags, "--master-port", str(port))


def test_the_chat_template_is_not_there(tmp_path: Path) -> None:
    _is_lost(tmp_path, "chat-template", "tiny", "--chat-template", str(tmp_path / "none.jinja"))


def test_shared_memory_is_full(tmp_path: Path) -> None:
    _is_lost(tmp_path, "shared-memory", "tiny", "-tp", "2", wrap=lost.full_tmpfs("/dev/shm"))


def test_the_memory_limit_is_below_the_weights(tmp_path: Path) -> None:
    with lost.memory_group(600 << 20) as wrap:
        _is_lost(tmp_path, "host-memory", "mid", wrap=wrap)


def test_a_rendezvous_that_one_node_does_not_use_is_not_judged(tmp_path: Path) -> None:
    """On one node vLLM takes no notice of --master-addr: such a start gets ready."""
    with lost.held_port(20882) as port:
        flags = ("-tp", "2", "--master-addr", "nowhere.invalid", "--master-port", str(port))
        with (
            vllm_server(tmp_path, "tiny", *flags) as server,
            watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
        ):
            lost.never_said(watcher)


def _is_lost(
    tmp_path: Path, rule: str, model: str, *flags: str, port: int | None = None, wrap: tuple[str, ...] = ()
) -> None:
    with (
        vllm_server(tmp_path, model, *flags, port=port, wrap=wrap) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        lost.is_lost(server, watcher, rule, f"vLLM {rule}")
