"""A model's folder: its config, index, and the header of each shard. Of a weight file only its header is read."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NamedTuple

import msgspec

from sgmon.json_text import as_json
from sgmon.model.preflight import ConfigValue, ModelFolder, Place, Shard
from sgmon.patterns import regex
from sgmon.text import clean

#: files larger than these are not read: no config, no index and no header is
CONFIG_BYTES, INDEX_BYTES, HEADER_BYTES = 4 << 20, 256 << 20, 100 << 20
NAMES, NESTED = 20_000, 200
INDEX = "model.safetensors.index.json"
#: what rules ask for
KEYS = (
    *("model_type", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "hidden_size", "head_dim"),
    *("vocab_size", "torch_dtype", "dtype", "tie_word_embeddings", "kv_lora_rank", "qk_rope_head_dim"),
    *("num_experts", "num_local_experts", "n_routed_experts", "num_routed_experts", "max_position_embeddings"),
    *("sliding_window", "use_sliding_window"),
)
_LAYER = regex(r"\blayers\.(\d+)\.")
_SPARE = regex(r"\b(?:lm_head|mtp|nextn|visual|vision\w*|audio\w*|image\w*|multi_modal\w*|rotary_emb)\b")


class Shape(NamedTuple):
    """What of its config decides which tensors are loaded. layers: its own; None: not known. head: whether the head
    is a tensor of its own for sure."""

    layers: int | None = None
    head: bool = False


#: (path, size, mtime, shape) -> its shard: a header does not change while these stay
_KNOWN: dict[tuple[str, int, int, Shape], Shard] = {}


def read(path: str, asked: str, *, elsewhere: bool = False) -> ModelFolder:
    """What lies at ``path``. elsewhere: below another root, where links to absolute paths lead astray."""
    try:
        names = sorted(os.listdir(path))
    except NotADirectoryError:
        return ModelFolder(asked, path, Place.FILE)
    except FileNotFoundError:
        return ModelFolder(asked, path, Place.ABSENT)
    except OSError:
        return ModelFolder(asked, path, Place.HIDDEN)
    if len(names) > NAMES:
        return ModelFolder(asked, path, Place.HIDDEN)
    names = [name for name in names if _is_there(f"{path}/{name}", elsewhere)]
    config, config_error = _config(path, names)
    indexed, index_error = _index(path, names)
    shape = _shape(dict(config or ()))
    shards = tuple(_shard(path, name, shape) for name in names if name.endswith(".safetensors"))
    return ModelFolder(
        asked,
        path,
        Place.FOLDER,
        names=tuple(names),
        config=config,
        config_error=config_error,
        indexed=indexed,
        index_error=index_error,
        shards=shards,
    )


def _is_there(path: str, elsewhere: bool) -> bool:
    """A link to nothing is not there; what may not be looked at is."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return elsewhere and os.path.islink(path)
    except OSError:
        pass
    return True


def _config(path: str, names: list[str]) -> tuple[tuple[tuple[str, ConfigValue], ...] | None, str]:
    if "config.json" not in names:
        return None, "not there"
    body, error = _json(f"{path}/config.json", CONFIG_BYTES)
    if body is None and not error:
        return (), ""
    if not isinstance(body, dict):
        return None, error or "it is no JSON object"
    inner = body.get("text_config") or body.get("llm_config") or {}
    inner = inner if isinstance(inner, dict) else {}
    found: dict[str, ConfigValue] = {}
    for key in KEYS:
        value = body.get(key, inner.get(key))
        if isinstance(value, (bool, int, float, str)):
            found[key] = value
    architectures = body.get("architectures")
    if isinstance(architectures, list):
        found["architectures"] = ",".join(clean(str(name), 80) for name in architectures[:4])
    method = (body.get("quantization_config") or inner.get("quantization_config") or {}).get("quant_method", "")
    if method:
        found["quant_method"] = clean(str(method), 40)
    if _names_experts(body):
        found["experts_named"] = True
    if body.get("auto_map"):
        found["auto_map"] = True
    if "tokenizer_config.json" in names:
        tokens, _ = _json(f"{path}/tokenizer_config.json", CONFIG_BYTES)
        if isinstance(tokens, dict) and tokens.get("chat_template"):
            found["chat_template"] = True
    return tuple(found.items()), ""


def _names_experts(value: object) -> bool:
    """Whether any name in it, at any depth, is about experts."""
    if isinstance(value, list):
        return any(map(_names_experts, value[:NESTED]))
    if not isinstance(value, dict):
        return False
    return any("expert" in name or "moe" in name or _names_experts(inner) for name, inner in value.items())


def _index(path: str, names: list[str]) -> tuple[tuple[str, ...] | None, str]:
    if INDEX not in names:
        return None, ""
    body, error = _json(f"{path}/{INDEX}", INDEX_BYTES)
    if body is None and not error:
        return None, ""
    map_ = body.get("weight_map") if isinstance(body, dict) else None
    if not isinstance(map_, dict):
        return None, error or "it has no weight_map"
    return tuple(sorted({clean(str(name), 200) for name in map_.values()})), ""


def _json(path: str, limit: int) -> tuple[Any, str]:
    """(value, why it is none). (None, ""): the file may not be read here. Python's own parser: the server reads these
    files by it, which takes NaN and Infinity."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit)
    except OSError:
        return None, ""
    try:
        return json.loads(data), ""
    except (ValueError, RecursionError) as err:
        return None, clean(str(err), 120) if data else "it is empty"


def _shape(config: dict[str, ConfigValue]) -> Shape:
    """A model that generates text, whose config says that the head is not tied to the embeddings, loads its head."""
    layers = config.get("num_hidden_layers")
    generates = "ForCausalLM" in str(config.get("architectures", ""))
    return Shape(
        layers if isinstance(layers, int) else None, generates and config.get("tie_word_embeddings") is False
    )


def _shard(path: str, name: str, shape: Shape) -> Shard:
    try:
        status = os.stat(f"{path}/{name}")
    except OSError:
        return Shard(name, 0)
    key = (f"{path}/{name}", status.st_size, status.st_mtime_ns, shape)
    if key not in _KNOWN:
        try:
            _KNOWN[key] = _header(f"{path}/{name}", name, status.st_size, shape)
        except OSError:
            return Shard(name, status.st_size)
    return _KNOWN[key]


def _header(path: str, name: str, size: int, shape: Shape) -> Shard:
    """8 bytes: length of the header, little-endian; the header: {name: {dtype, shape, data_offsets}}; the data."""
    with open(path, "rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8:
            return Shard(name, size, error=f"it has {size} bytes, a header alone has 8")
        if length > HEADER_BYTES:
            return Shard(name, size, error="its first 8 bytes are no length of a header")
        data = file.read(length)
    if len(data) < length:
        return Shard(name, size, wanted_bytes=8 + length)
    try:
        tensors = msgspec.json.decode(data)
        found: dict[str, int] = {}
        end = spare = 0
        for tensor, body in tensors.items():
            if tensor != "__metadata__":
                begin, stop = body["data_offsets"]
                end = max(end, stop)
                if _is_spare(tensor, shape):
                    spare += stop - begin
                else:
                    found[body["dtype"]] = found.get(body["dtype"], 0) + stop - begin
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError, ValueError):
        return Shard(name, size, error="its header is no list of tensors")
    return Shard(name, size, 8 + length + end, tuple(found.items()), spare)


def _is_spare(tensor: str, shape: Shape) -> bool:
    """Whether a tensor may be left out of the load: a head that is tied to the embeddings, layers beyond the model's
    own (of a draft), towers for pictures and sound, tables that are computed anew."""
    layer = _LAYER.search(tensor)
    if shape.layers is not None and layer is not None and int(layer[1]) >= shape.layers:
        return True
    found = _SPARE.search(tensor)
    return found is not None and not (shape.head and tensor == "lm_head.weight")


def main() -> None:
    """The child: prints what ``read`` says of its two arguments."""
    sys.stdout.buffer.write(as_json(read(sys.argv[1], sys.argv[2])))
