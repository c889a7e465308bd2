"""Real starts of SGLang that are lost from the beginning: the second of the warning, and the second of the failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real import lost
from tests.real.server import copy_model, free_port, real_server
from tests.real.watching import watching


@pytest.mark.parametrize("rule", lost.DAMAGES)
def test_a_model_that_cannot_be_loaded(tmp_path: Path, rule: str) -> None:
    folder = copy_model("tiny", tmp_path / "model")
    lost.DAMAGES[rule](folder)
    _is_lost(tmp_path, rule, str(folder))


def test_the_port_is_held(tmp_path: Path) -> None:
    with lost.held_port(free_port()) as port:
        _is_lost(tmp_path, "port", "tiny", port=port)


def test_the_rendezvous_port_is_held(tmp_path: Path) -> None:
    with lost.held_port(20877):
        _is_lost(tmp_path, "rendezvous-port", "tiny", "--dist-init-addr", "127.0.0.1:20877")


def test_the_chat_template_is_not_there(tmp_path: Path) -> None:
    _is_lost(tmp_path, "chat-template", "tiny", "--chat-template", str(tmp_path / "none.jinja"))


def test_the_ranks_cannot_be_divided_among_the_nodes(tmp_path: Path) -> None:
    flags = ("--tp", "3", "--nnodes", "2", "--node-rank", "0", "--dist-init-addr", "127.0.0.1:20879")
    _is_lost(tmp_path, "nodes", "tiny", *flags)


def test_shared_memory_is_full(tmp_path: Path) -> None:
    _is_lost(tmp_path, "shared-memory", "tiny", "--tp", "2", wrap=lost.full_tmpfs("/dev/shm"))


def test_the_memory_limit_is_below_the_weights(tmp_path: Path) -> None:
    with lost.memory_group(1300 << 20) as wrap:
        _is_lost(tmp_path, "host-memory", "mid", wrap=wrap)


def test_the_rendezvous_cannot_be_resolved(tmp_path: Path) -> None:
    _is_said(tmp_path, "unresolved", "--dist-init-addr", "nowhere.invalid:20878")


def test_an_address_that_is_not_this_machine_s(tmp_path: Path) -> None:
    _is_said(tmp_path, "address", "--host", "192.0.2.7")


@pytest.mark.parametrize("flags", [(), ("--tp", "2")], ids=["tp1", "tp2"])
def test_a_healthy_start_is_never_said_to_fail(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with (
        real_server(tmp_path, "tiny", *flags) as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        lost.never_said(watcher)


def test_heads_are_padded_on_a_cpu(tmp_path: Path) -> None:
    """4 heads among 3 ranks: a doubt and no more, for such a start goes on."""
    with (
        real_server(tmp_path, "tiny", "--tp", "3", env={"SGLANG_CPU_OMP_THREADS_BIND": "0|1|0"}) as server,
        watching(tmp_path / "watch.jsonl.gz", port=server.port) as watcher,
    ):
        lost.never_said(watcher)
        assert "heads" in [one.rule for one in watcher.snapshot.forecasts if one.level == "warning"]


def _is_lost(
    tmp_path: Path, rule: str, model: str, *flags: str, port: int | None = None, wrap: tuple[str, ...] = ()
) -> None:
    with (
        real_server(tmp_path, model, *flags, port=port, wrap=wrap) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        lost.is_lost(server, watcher, rule)


def _is_said(tmp_path: Path, rule: str, *flags: str) -> None:
    """torch tries for half an hour before it gives up."""
    with (
        real_server(tmp_path, "tiny", *flags) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        lost.is_said(server, watcher, rule, "c10d]")
