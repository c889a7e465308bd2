"""The model's files: is the folder there, is its config readable, are its shards whole, does it have a tokenizer."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doomed, doubt, fine, label, unknown
from sgmon.model.preflight import Forecast, ModelFolder, Place, Shard
from sgmon.model.verdict import NextStep
from sgmon.patterns import regex
from sgmon.text import quoted
from sgmon.units import plural, size

#: parts of the names of a tokenizer's files; those that only describe one do not count
_TOKENIZER = regex(r"token|vocab|piece|tekken|merges|\.model$|\.tiktoken$|\.bpe")
_DESCRIBES = frozenset({"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
#: models that read bytes and have no vocabulary
_BYTES = frozenset({"byt5", "canine", "perceiver", "evabyte"})
_NAMED = 3


def model_path(start: Start) -> Iterator[Forecast]:
    """The model is there. An absolute path that is not there is no name on a hub either: huggingface_hub
    utils/_validators.py, "Repo id must be in the form"."""
    for what, folder in _models(start):
        yield _path(start, what, folder)


def _path(start: Start, what: str, folder: ModelFolder) -> Forecast:
    phase = start.phase("arguments")
    if folder.place is Place.ABSENT:
        step = NextStep("Give the path of a model that is there", f"ls -d {quoted(folder.asked)}")
        why = "an absolute path that is not there is no name of a model on the hub either"
        return doomed("model-path", what, f"the {what} is not there: {folder.asked}", why, phase, step)
    if folder.place is Place.HUB:
        words = f"{folder.asked} is not in the hub's cache here"
        if start.offline:
            step = NextStep(
                "Fetch it first, or allow the hub", f"HF_HUB_OFFLINE=0 hf download {quoted(folder.asked)}"
            )
            why = "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set, so that nothing is fetched"
            return doomed("model-offline", what, words, why, phase, step)
        return doubt("model-download", what, f"{words}: the start fetches it first")
    if folder.place is Place.HUNG:
        step = NextStep("Look whether the mount answers", f"stat -f {quoted(folder.asked)}")
        where = f" ({folder.fstype})" if folder.fstype else ""
        return doubt("model-hung", what, f"{folder.asked}{where} has not answered: its mount hangs or is slow", step)
    if folder.place is Place.HIDDEN:
        return unknown("model-path", what, f"{folder.asked} may not be read by this user")
    if folder.place is Place.URL:
        return unknown("model-path", what, f"{folder.asked} is another machine's: not looked at")
    return fine("model-path", what, folder.path or folder.asked)


def config(start: Start) -> Iterator[Forecast]:
    """config.json can be read: without it neither the architecture nor a size is known to the server."""
    for what, folder in _folders(start):
        check = f"{what}'s config"
        if folder.config is not None:
            kind = str(folder.get("architectures") or folder.get("model_type") or "no architecture named")
            yield fine("config", check, kind)
        elif folder.config_error and "config.json" in folder.names:
            step = NextStep(
                "Put the right file in its place", f"python3 -m json.tool {quoted(f'{folder.path}/config.json')}"
            )
            why = "the server reads the same file for the architecture and all sizes"
            text = f"{label(folder)}/config.json is not readable: {folder.config_error}"
            yield doomed("config", check, text, why, start.phase("arguments"), step)
        elif start.stays_local and not _other_format(folder):
            step = NextStep("Put config.json into the model's folder", f"ls {quoted(folder.path)}")
            why = "the server reads it for the architecture and all sizes, and this folder is not fetched from a hub"
            text = f"{label(folder)} has no config.json"
            yield doomed("config", check, text, why, start.phase("arguments"), step)
        else:
            yield unknown("config", check, "no config.json")


def shards(start: Start) -> Iterator[Forecast]:
    """The files that the index names are there, and each is as long as its own header says.

    safetensors: 8 bytes, length of the header; the header, JSON; the data, up to the largest of ``data_offsets``
    (github.com/huggingface/safetensors, README "Format"). Its reader refuses a file of any other length.
    """
    if not start.loads_files:
        return
    for what, folder in _folders(start):
        check = f"{what}'s shards"
        found = [*_index(start, what, folder), *_missing(start, what, folder), *_cut(start, what, folder)]
        yield from found
        if not found and folder.shards:
            total = sum(shard.size_bytes for shard in folder.shards)
            yield fine(
                "shards",
                check,
                f"{plural(len(folder.shards), 'file')}, {size(total)}, each as long as its header says",
            )
        elif not found and _weightless(start, folder):
            step = NextStep("Look for its weights", f"ls -l {quoted(folder.path)}")
            why = "no file of any format that holds weights is in the folder"
            text = f"{label(folder)} has no weights"
            yield doomed("no-weights", check, text, why, start.phase("weights"), step)


def _index(start: Start, what: str, folder: ModelFolder) -> Iterator[Forecast]:
    if folder.index_error and start.stays_local:
        step = NextStep("Put the right index in its place", f"ls -l {quoted(folder.path)}")
        text = f"the index of the {what}'s shards is not readable: {folder.index_error}"
        if "index-read" in start.facts.installed.proofs and len(folder.shards) != 1:
            why = "the loader reads the same file before any weight"
            yield doomed("index", f"{what}'s shards", text, why, start.phase("weights"), step)
        else:
            yield doubt("index", f"{what}'s shards", text, step)


def _missing(start: Start, what: str, folder: ModelFolder) -> Iterator[Forecast]:
    lost = sorted(set(folder.indexed or ()) - set(folder.names))
    if not lost:
        return
    text = f"{label(folder)}: {_names(lost)} {'is' if len(lost) == 1 else 'are'} missing, which the index names"
    step = NextStep("Fetch what is missing, or mend the index", f"ls {quoted(folder.path)}")
    if start.stays_local and "missing-shard" in start.facts.installed.proofs:
        why = "the loader of the installed version refuses an index that names a file which is not there"
        yield doomed("shard-missing", f"{what}'s shards", text, why, start.phase("weights"), step)
    else:
        yield doubt("shard-missing", f"{what}'s shards", text, step)


def _cut(start: Start, what: str, folder: ModelFolder) -> Iterator[Forecast]:
    used = [shard for shard in folder.shards if folder.indexed is None or shard.name in folder.indexed]
    broken = [shard for shard in used if shard.error or (shard.wanted_bytes or 0) > shard.size_bytes]
    if not broken:
        return
    text = f"{label(folder)}: {_broken(broken[0])}"
    text += f", and {len(broken) - 1} more" if len(broken) > 1 else ""
    step = NextStep("Fetch this file again", f"ls -l {quoted(f'{folder.path}/{broken[0].name}')}")
    why = "safetensors refuses a file that is shorter than its own header says, or that has none"
    yield doomed("shard-cut", f"{what}'s shards", text, why, start.phase("weights"), step)


def _broken(shard: Shard) -> str:
    if shard.error:
        return f"{shard.name} is damaged: {shard.error}"
    return f"{shard.name} is cut: {size(shard.size_bytes)} of {size(shard.wanted_bytes)}"


def tokenizer(start: Start) -> Iterator[Forecast]:
    """A tokenizer lies where it is looked for."""
    if start.options.no_tokenizer:
        return
    folder = start.facts.tokenizer or start.facts.model
    if folder is None or folder.place not in (Place.FOLDER, Place.ABSENT):
        return
    step = NextStep(
        "Copy the tokenizer's files there, or name another place for it", f"ls {quoted(folder.path or folder.asked)}"
    )
    phase = start.phase("tokenizer")
    found = [name for name in folder.names if name not in _DESCRIBES and _TOKENIZER.search(name)]
    if folder.place is Place.ABSENT and folder is start.facts.tokenizer:
        why = "an absolute path that is not there is no name on the hub either"
        yield doomed("tokenizer", "tokenizer", f"the tokenizer is not there: {folder.asked}", why, phase, step)
    elif folder.place is Place.FOLDER and not found:
        text = f"{label(folder)} has no tokenizer (no tokenizer.json, tokenizer.model, vocabulary ...)"
        own_code = any(name.startswith("tokenization_") for name in folder.names) or _other_format(folder)
        own_code = own_code or folder.get("model_type") in _BYTES
        if start.stays_local and not own_code:
            why = "the folder is not fetched from a hub, and holds no tokenizer of any kind and no code of one"
            yield doomed("tokenizer", "tokenizer", text, why, phase, step)
        else:
            yield doubt("tokenizer", "tokenizer", text, step)
    elif folder.place is Place.FOLDER:
        yield fine("tokenizer", "tokenizer", found[0])


def _models(start: Start) -> list[tuple[str, ModelFolder]]:
    named = (("model", start.facts.model), ("draft model", start.facts.draft))
    return [(what, folder) for what, folder in named if folder is not None]


def _folders(start: Start) -> list[tuple[str, ModelFolder]]:
    return [(what, folder) for what, folder in _models(start) if folder.place is Place.FOLDER]


def _weightless(start: Start, folder: ModelFolder) -> bool:
    ends = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".ckpt", ".npz", ".h5", ".msgpack")
    return start.stays_local and bool(folder.names) and not any(name.endswith(ends) for name in folder.names)


def _other_format(folder: ModelFolder) -> bool:
    """A folder of a format that has no Hugging Face config (GGUF, Mistral's, an adapter, a diffusion pipeline)."""
    own = ("params.json", "adapter_config.json", "model_index.json")
    return any(name in own or name.endswith(".gguf") for name in folder.names)


def _names(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
