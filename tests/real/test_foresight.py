"""Real starts that are lost from the beginning: the second of the warning, and the second of the failure."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real import measured
from tests.real.server import copy_model, free_port, real_server, until
from tests.real.watching import Watcher, watching

SHARD = "model-00003-of-00005.safetensors"
INDEX = "model.safetensors.index.json"
#: a start on a busy machine takes a minute to its first own error
ENDS_S = 240.0


def _missing(folder: Path) -> None:
    (folder / SHARD).unlink()


def _cut(folder: Path) -> None:
    os.truncate(folder / SHARD, 300_000)


def _wrong_index(folder: Path) -> None:
    (folder / INDEX).write_text((folder / INDEX).read_text()[:400])


def _wrong_config(folder: Path) -> None:
    (folder / "config.json").write_text((folder / "config.json").read_text()[:200])


def _no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


@pytest.mark.parametrize(
    ("rule", "damage"),
    [
        ("shard-missing", _missing),
        ("shard-cut", _cut),
        ("index", _wrong_index),
        ("config", _wrong_config),
        ("tokenizer", _no_tokenizer),
    ],
)
def test_a_model_that_cannot_be_loaded(tmp_path: Path, rule: str, damage: Callable[[Path], None]) -> None:
    folder = copy_model("tiny", tmp_path / "model")
    damage(folder)
    _is_lost(tmp_path, rule, str(folder))


def test_the_port_is_held(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", free_port()))
        held.listen()
        _is_lost(tmp_path, "port", "tiny", port=held.getsockname()[1])


def test_the_rendezvous_port_is_held(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 20877))
        held.listen()
        _is_lost(tmp_path, "rendezvous-port", "tiny", "--dist-init-addr", "127.0.0.1:20877")


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
        watcher.wait_for("ready")
        assert "will-fail" not in watcher.states(), watcher.history()
        assert watcher.snapshot.preflight is not None
        assert not [one for one in watcher.snapshot.forecasts if one.level == "will-fail"]


def _is_lost(tmp_path: Path, rule: str, model: str, *flags: str, port: int | None = None) -> None:
    """It is said to fail, by this rule, before it ends; and it ends without having been ready."""
    with (
        real_server(tmp_path, model, *flags, port=port) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        # after a bind error 0.5.23 shuts its application down and stays: the log's error is its end then
        until(lambda: server.ended or watcher.first("crashed"), ENDS_S, "the end of the server")
        crashed = watcher.first("crashed")
        ended_at = crashed.at if crashed is not None else time.time()
        said = watcher.first("will-fail")
        _note(rule, watcher, server.began_at, None if said is None else said.at, ended_at)
        assert said is not None, watcher.history() + server.text()[-2000:]
        assert said.verdict.rule == f"will-fail-{rule}"
        assert said.at < ended_at
        assert "ready" not in watcher.states()


def _is_said(tmp_path: Path, rule: str, *flags: str) -> None:
    """It is said to fail, by this rule. torch tries for half an hour before it gives up: that is not awaited."""
    with (
        real_server(tmp_path, "tiny", *flags) as server,
        watching(tmp_path / "watch.jsonl.gz", pid=server.pid) as watcher,
    ):
        said = watcher.wait_for("will-fail", timeout_s=60)
        assert said.verdict.rule == f"will-fail-{rule}"
        server.wait_for_line("c10d]", 120)
        assert "ready" not in watcher.states()


def _note(rule: str, watcher: Watcher, began: float, said_at: float | None, ended_at: float) -> None:
    said = watcher.first("will-fail")
    headline = "" if said is None else said.verdict.headline
    measured.ROWS.append(
        measured.Row(
            f"will fail: {rule}",
            "will-fail" if said_at is not None else "nothing",
            None if said_at is None else said_at - began,
            "ended",
            ended_at - began,
            headline,
        )
    )
