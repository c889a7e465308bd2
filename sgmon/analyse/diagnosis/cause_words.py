"""The first cause in words that carry the fact: the exception's own text, its file, the sizes asked and free."""

from __future__ import annotations

from sgmon.analyse.log.catalogue import Catalogue
from sgmon.model import LogError
from sgmon.patterns import regex
from sgmon.text import clean

#: of an exception's own text; the log line is in the evidence in full
TEXT = 110
_WEIGHT_FILE = regex(r"[\w.-]+\.(?:safetensors|bin|pt|gguf)\b(?!\.index)")
#: torch: "Tried to allocate 924.00 MiB. GPU 0 has a total capacity of 139.81 GiB of which 230.00 MiB is free."
_ASKED = regex(r"Tried to allocate ([\d.]+ [KMGT]iB)")
_FREE = regex(r"of which ([\d.]+ [KMGT]iB) is free")
#: kinds whose headline says what was asked and what was free
_MEMORY = frozenset({"oom_cuda", "host_memory"})


def cause_words(error: LogError, catalogue: Catalogue) -> str:
    """ "weight file model-00003.safetensors is missing", "JSONDecodeError: Expecting value (config.json)"."""
    if error.kind == "weights_missing":
        file = _WEIGHT_FILE.search(error.text)
        if file is not None:
            return f"weight file {clean(file[0], 80)} is missing"
    words = catalogue.error_words(error.kind)
    if catalogue.has_words(error.kind):
        return words
    if not error.message:
        code = f": {clean(error.code, TEXT)}" if error.code else ""
        return f"{words}{code}" + (f", in {error.place}" if error.place else "")
    base = error.file.rsplit("/", 1)[-1]
    named = f" ({base})" if base and base not in error.message else ""
    return f"{error.exception}: {clean(error.message, TEXT)}{named}"


def figures(error: LogError) -> str:
    """ "924.00 MiB asked, 230.00 MiB free"; "" where the log does not tell, or they are not the point."""
    if error.kind not in _MEMORY:
        return ""
    asked, free = _ASKED.search(error.text), _FREE.search(error.text)
    parts = [f"{asked[1]} asked"] if asked is not None else []
    parts += [f"{free[1]} free"] if free is not None else []
    return ", ".join(parts)
