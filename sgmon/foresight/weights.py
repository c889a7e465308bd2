"""Bytes of a model's weights on a rank, by the headers of its shards: at least, and as expected."""

from __future__ import annotations

from collections.abc import Iterable

from sgmon.foresight.start import Start
from sgmon.model.preflight import ModelFolder, Shard

#: bytes of one element of a floating dtype of safetensors that a load may convert
_FLOATS = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}
_HALF = 2
_WIDE = ("float", "float32")


def weights_bytes(model: ModelFolder) -> int | None:
    """Least bytes of the whole model's weights in memory, by its shards' headers; None: not all can be read.

    Floats wider than 16 bits may be loaded as 16 bits; every other dtype stays as it is.
    """
    used = _used(model)
    return None if used is None else sum(_half(shard.weights) for shard in used)


def least_bytes(start: Start) -> int | None:
    """Least bytes of weights on a rank; None: not known, or the arguments change what is loaded.

    All bytes divided by the ranks that share them: nothing is divided further, while norms, small layers and, with
    few KV heads, whole projections are on every rank.
    """
    model = _loaded(start)
    whole = None if model is None else weights_bytes(model)
    return None if whole is None else whole // _sharers(start)


def expected_bytes(start: Start) -> int | None:
    """Expected bytes of weights on a rank: the least, with the head, where the config says that it is not tied (what
    was read by an older sgmon counts it as spare). None: not known."""
    model = _loaded(start)
    used = None if model is None else _used(model)
    if model is None or used is None:
        return None
    head = sum(shard.spare_bytes for shard in used) if model.get("tie_word_embeddings") is False else 0
    wide = dict(start.args.raw).get("dtype", "") in _WIDE
    whole = sum(sum(count for _, count in shard.weights) if wide else _half(shard.weights) for shard in used)
    return (whole + head) // _sharers(start)


def _loaded(start: Start) -> ModelFolder | None:
    """The folder whose weights are loaded as they are; None: there is none, or the arguments change them."""
    model, options = start.facts.model, start.options
    if model is None or not start.loads_files or options.partly_elsewhere:
        return None
    made_smaller = options.quantization and not model.get("quant_method")
    return None if made_smaller else model


def _used(model: ModelFolder) -> list[Shard] | None:
    used = [shard for shard in model.shards if model.indexed is None or shard.name in model.indexed]
    return None if not used or any(shard.wanted_bytes is None for shard in used) else used


def _half(weights: Iterable[tuple[str, int]]) -> int:
    return sum(
        count * _HALF // _FLOATS[dtype] if _FLOATS.get(dtype, 0) > _HALF else count for dtype, count in weights
    )


def _sharers(start: Start) -> int:
    return max(1, start.args.tp * start.args.pp)
