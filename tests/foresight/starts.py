"""Models in files as they are on disks, and starts of them, for the rules."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sgmon.collect.preflight import folder
from sgmon.foresight.check import forecast
from sgmon.foresight.start import RankGpu, Start
from sgmon.model import ServerArgs
from sgmon.model.preflight import Forecast, Installed, Level, Preflight
from sgmon.servers import registry

GIB = 1024**3
#: what 0.5.23's files tell of a Llama
INSTALLED = Installed(
    architectures=("LlamaForCausalLM", "Qwen2ForCausalLM"),
    model_file="llama.py",
    asserts=("assert self.total_num_heads % tp_size == 0", "assert self.total_num_kv_heads % tp_size == 0"),
    proofs=("missing-shard", "index-read"),
)
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "dtype": "bfloat16",
}


def shard(path: Path, tensors: dict[str, tuple[str, int]]) -> None:
    """A safetensors file of zeros: name -> (dtype, bytes)."""
    at, header = 0, {"__metadata__": {"format": "pt"}}
    for name, (dtype, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": [size], "data_offsets": [at, at + size]}  # type: ignore[dict-item]
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)  # a hole: large models cost nothing


def model(path: Path, *, bytes_each: int = 1000, dtype: str = "BF16", **config: Any) -> Path:
    """A whole model: two shards with their index, config, tokenizer."""
    path.mkdir(parents=True)
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    for n, name in enumerate(names):
        shard(path / name, {f"layer.{n}": (dtype, bytes_each)})
    index = {"metadata": {}, "weight_map": {f"layer.{n}": name for n, name in enumerate(names)}}
    (path / folder.INDEX).write_text(json.dumps(index))
    (path / "config.json").write_text(json.dumps({**CONFIG, **config}))
    (path / "tokenizer.json").write_text("{}")
    (path / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    return path


def start(path: Path | None, facts: Preflight | None = None, *, gpus: tuple[RankGpu, ...] = (), **args: Any) -> Start:
    """A start of the model at ``path`` on GPUs, 0.5.23."""
    facts = facts or Preflight()
    if path is not None:
        facts = replace(facts, model=folder.read(str(path), str(path)))
    facts = facts if facts.installed != Installed() else replace(facts, installed=INSTALLED)
    asked = ServerArgs(model_path=str(path or ""), **args)
    return Start(registry.get("sglang"), asked, facts, gpus, "0.5.23", cards=len(gpus) or None)


def said(one: Start) -> list[tuple[str, str]]:
    """(rule, level) of what is not fine. Of the GPUs' peers nothing is known where a test gives none."""
    found = [one for one in forecast(one) if one.level is not Level.OK]
    return [(one.rule, one.level.value) for one in found if (one.rule, one.level) != ("peers", Level.UNKNOWN)]


def only(one: Start, rule: str) -> Forecast:
    return next(found for found in forecast(one) if found.rule == rule)
