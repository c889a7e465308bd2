"""The files of a play: the played package, a model of small real shards, the slots of the ranks."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

from sgmon.demo import gpus
from sgmon.demo.blackboard import Blackboard
from sgmon.demo.play import Play

_LAUNCH_SERVER = '''\
"""Launch the inference server. (Simulated: sgmon demo.)"""

from sgmon.demo.importing import import_for_a_while
from sgmon.demo.play import Play

import_for_a_while(__name__)

if __name__ == "__main__":
    from sgmon.demo.played.sglang.srt.entrypoints.http_server import main

    main(Play.from_environment())
'''
_VLLM = '''\
"""vllm serve. (Simulated: sgmon demo.)"""

from sgmon.demo.importing import import_for_a_while
from sgmon.demo.play import Play

import_for_a_while(__name__)

if __name__ == "__main__":
    from sgmon.demo.played.vllm.entrypoints.cli.serve import ServeSubcommand

    ServeSubcommand.cmd(Play.from_environment())
'''
#: family -> the script that is launched, below the played site-packages
_SCRIPTS = {"sglang": ("sglang/launch_server.py", _LAUNCH_SERVER), "vllm": ("bin/vllm", _VLLM)}
_METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: {version}
Summary: Simulated by sgmon demo. Not the real one.
"""


def write_play(play: Play) -> None:
    """Everything that must lie there before the first process starts."""
    _write_package(play)
    _write_model(play)
    Blackboard.create(play.board_path, play.local_ranks)
    gpus.write(play.gpus_path, gpus.readings(Blackboard(play.board_path), play.local_ranks))
    Path(play.log_path).touch()
    play.write()


def _write_package(play: Play) -> None:
    site, name = Path(play.site), play.scenario.family
    package, info = site / name, site / f"{name}-{play.version}.dist-info"
    script, text = _SCRIPTS[name]
    for folder in (package, info, (site / script).parent):
        folder.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "version.py").write_text(f'__version__ = "{play.version}"\n')
    (site / script).write_text(text)
    (info / "METADATA").write_text(_METADATA.format(name=name, version=play.version))


def _write_model(play: Play) -> None:
    scenario = play.scenario
    folder = Path(play.model_path)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"architectures": [scenario.model_type]}))
    data = os.urandom(scenario.shard_bytes)
    names = {}
    for number in range(1, scenario.shards + 1):
        name = f"model-{number:05d}-of-{scenario.shards:05d}.safetensors"
        _write_shard(folder / name, f"layer.{number}", data)
        names[f"layer.{number}"] = name
    index = {"metadata": {"total_size": len(data) * scenario.shards}, "weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _write_shard(path: Path, tensor: str, data: bytes) -> None:
    """A valid safetensors file, and out of the page cache, so that reading it is seen in read_bytes."""
    entry = {tensor: {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}
    header = json.dumps(entry).encode()
    header += b" " * (-(8 + len(header)) % 4096)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.write(data)
        file.flush()
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
