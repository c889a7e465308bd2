"""Lines that are JSON objects: docker's json-file, loguru, structlog, journalctl -o json, cloud exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

#: Names on the way to a value.
Path = tuple[str, ...]
DEEPEST = 4


def decode(text: str) -> dict[str, Any] | None:
    """The object that the line is; None: it is none, or is cut."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        found = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def message(found: dict[str, Any], speaks: Callable[[str], bool]) -> Path | None:
    """The path of the shortest text that the server speaks in; None: it is in none."""
    own = [(len(text), path) for path, text in texts(found) if speaks(text)]
    return min(own)[1] if own else None


def texts(found: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text in the object with its path."""
    if isinstance(found, dict) and len(path) < DEEPEST:
        for name, value in found.items():
            yield from texts(value, (*path, str(name)))
    elif isinstance(text := _text(found), str):
        yield path, text


def value_at(found: object, path: Path) -> str | None:
    """The text at ``path``; None: there is none."""
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return _text(found)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        return bytes(value).decode("utf-8", "replace")  # journalctl writes so what is not plain text
    return None
