"""The facts as they are read from files, sockets and limits; the command that shows what follows from them."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from sgmon.collect.preflight import folder, installed, locks, models
from sgmon.collect.preflight.read import read
from sgmon.commands.check import server_of
from sgmon.discovery import inner
from sgmon.model import Event
from sgmon.model.preflight import Place
from sgmon.proc.mounts import Mount
from sgmon.recording.codec import Decoder, Encoder, Lines
from sgmon.servers import registry
from tests.foresight.starts import model, shard
from tui_app.cli import main

COMMAND = ["--", sys.executable, "-m", "sglang.launch_server", "--model-path"]


def test_facts_of_a_command_line(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        server = server_of([*COMMAND, str(path), "--port", str(port), "--dist-init-addr", f"127.0.0.1:{port}"])
        facts = read("/proc", server, started=False)
    assert facts.model is not None and facts.model.place is Place.FOLDER
    assert facts.model.number("num_attention_heads") == 4
    assert [shard.wanted_bytes == shard.size_bytes for shard in facts.model.shards] == [True, True]
    assert facts.port is not None and [(one.pid, one.ours) for one in facts.port] == [(os.getpid(), False)]
    assert facts.rendezvous is not None and facts.rendezvous_port == port
    assert {space.what for space in facts.spaces} >= {"shared memory", "temporary files"}
    assert facts.limits.memory_total_bytes and facts.resolved[0].here
    encoder, lines, decoder = Encoder(), Lines(), Decoder()
    encoded = encoder.encode(Event(1.0, "preflight", facts))
    assert encoded is not None
    again = decoder.decode(lines.line(encoded))
    assert again is not None and again.reading == facts, "a recording holds the facts"


def test_a_folder_that_another_machine_answers_for_is_read_by_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model(tmp_path / "m")
    server = server_of([*COMMAND, str(path)])
    inside = inner.of("/proc", os.getpid())
    nfs = inside._replace(rows=(*inside.rows, Mount("0:9", "/", str(tmp_path), "nfs4", "host:/")))
    plain, remote = models.look(inside, server, str(path)), models.look(nfs, server, str(path))
    assert plain is not None and remote is not None
    assert replace(remote, fstype=plain.fstype) == plain
    assert remote.fstype == "nfs4"
    monkeypatch.setattr(models, "REMOTE_S", 0.0)
    hung = models.look(nfs, server, str(path))
    assert hung is not None and hung.place is Place.HUNG


def test_a_snapshot_of_the_hub_s_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = tmp_path / "models--org--name"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc")
    model(repo / "snapshots" / "abc")
    server = server_of([*COMMAND, "org/name"])
    inside = inner.of("/proc", os.getpid())
    monkeypatch.setattr(inner, "environment", lambda root, pid: {"HF_HUB_CACHE": str(tmp_path)})
    found = models.look(inside, server, "org/name")
    assert found is not None and (found.place, found.from_cache) == (Place.FOLDER, True)
    lost = models.look(inside, server, "org/other")
    assert lost is not None and lost.place is Place.HUB


def test_an_address_that_is_not_here() -> None:
    facts = read("/proc", server_of([*COMMAND, "m", "--host", "192.0.2.7"]), started=False)
    assert [(one.what, one.here) for one in facts.resolved] == [("host", False)]


def test_what_may_not_be_looked_at_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model(tmp_path / "m")

    def refuse(name: str, *rest: object) -> object:
        if "m/" in name:
            raise PermissionError(13, "Permission denied")
        return real(name, *rest)  # type: ignore[arg-type]

    real = os.stat
    monkeypatch.setattr(folder.os, "stat", refuse)
    found = folder.read(str(path), "m")
    assert len(found.names) == 6 and all(not one.error and one.wanted_bytes is None for one in found.shards)


def test_paths_of_a_process_whose_mounts_are_hidden_are_not_judged(tmp_path: Path) -> None:
    server = replace(server_of([*COMMAND, "/models/none"]), pid=2**22 - 1)
    facts = read("/proc", server)
    assert facts.model is not None and facts.model.place is Place.HIDDEN and facts.away


def test_a_link_to_nothing_is_no_file(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    (path / "model-00002-of-00002.safetensors").unlink()
    (path / "model-00002-of-00002.safetensors").symlink_to(tmp_path / "blob")
    assert "model-00002-of-00002.safetensors" not in folder.read(str(path), "m").names


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = model(tmp_path / "m")
    whole = [*COMMAND, str(path), "--device", "cpu", "--port", "1"]
    assert main(["check", "--no-gpu", *whole]) == 0
    assert "nothing is sure to fail" in capsys.readouterr().out
    (path / "tokenizer.json").unlink()
    assert main(["check", "--no-gpu", *whole]) == 3
    out = capsys.readouterr().out
    assert "WILL FAIL" in out and "because the folder is not fetched" in out
    assert main(["check", "--no-gpu", "--json", *whole]) == 3
    body = json.loads(capsys.readouterr().out)
    assert body["level"] == "will-fail"
    assert next(one for one in body["checks"] if one["rule"] == "tokenizer")["phase"] == "spawn"
    assert main(["check", "--", "sleep", "1"]) == 2
    assert main(["check"]) == 2


def test_tensors_that_may_be_left_out_are_no_part_of_the_least(tmp_path: Path) -> None:
    path = model(tmp_path / "m")
    shard(
        path / "model-00001-of-00002.safetensors",
        {
            "model.layers.0.mlp.weight": ("BF16", 1000),
            "model.layers.2.mlp.weight": ("BF16", 100),  # the model has two layers
            "lm_head.weight": ("BF16", 10),
            "visual.blocks.0.weight": ("F32", 1),
        },
    )
    first = folder.read(str(path), "m").shards[0]
    assert first.weights == (("BF16", 1000),)
    assert first.spare_bytes == 111


@pytest.mark.parametrize(
    ("family", "files", "architecture", "expected"),
    [
        (
            "sglang",
            {
                "srt/models/llama.py": "        assert self.total_num_heads % tp_size == 0\nEntryClass = [\n    LlamaForCausalLM,\n"
                "    Phi3ForCausalLM,\n]\n",
                "srt/models/mistral.py": "EntryClass = MistralForCausalLM\n",
                "srt/model_loader/weight_utils.py": 'f"from {hf_folder} (incomplete download?): "\n',
            },
            "Phi3ForCausalLM",
            ("llama.py", ("assert self.total_num_heads % tp_size == 0",), ("missing-shard",), 3),
        ),
        (
            "vllm",
            {
                "model_executor/models/registry.py": '    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),\n'
                '    "Phi3ForCausalLM": ("phi3", "Phi3ForCausalLM"),\n',
                "config/model.py": '" must be divisible by tensor parallel size "\n',
            },
            "Phi3ForCausalLM",
            ("registry.py", (), ("heads-divisible",), 2),
        ),
    ],
)
def test_what_the_installed_package_tells(
    tmp_path: Path, family: str, files: dict[str, str], architecture: str, expected: tuple[object, ...]
) -> None:
    for name, text in files.items():
        path = tmp_path / family / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text("debug = False\ncuda: Optional[str] = '12.8'\n")
    inside = inner.of("/proc", os.getpid())
    found = installed.look(inside, registry.get(family), str(tmp_path), (architecture,))
    assert (found.model_file, found.asserts, found.proofs, len(found.architectures or ())) == expected
    assert found.cuda == "12.8"


def test_a_lock_file_of_a_cache_that_locks_by_flock_is_no_finding(tmp_path: Path) -> None:
    """tvm-ffi leaves its file "lock" behind after every build; torch's FileBaton locks by the file alone."""
    old = time.time() - 3600
    for cache in ("tvm-ffi", "torch_extensions"):
        path = tmp_path / ".cache" / cache / "build" / "lock"
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (old, old))
    found = locks.stale("/proc", {"HOME": str(tmp_path)})
    assert [path.split("/.cache/")[1] for path, _ in found] == ["torch_extensions/build/lock"]
