"""Texts that are kept, a file each, and compared by syrupy: ``make goldens`` after a change that is meant."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

#: what a test of a kept text says where it is another now
MEANT = "if this is meant: make goldens"


class Texts(SingleFileSnapshotExtension):
    """A file for each test."""

    file_extension = "txt"
    _write_mode = WriteMode.TEXT


def row(value: msgspec.Struct, *without: str) -> str:
    """ "name=load_begin line=5 rank=TP0": the fields that are not as their default; floats to four places."""
    return " ".join(f"{name}={word(given)}" for name, given in told(value) if name not in without)


def told(value: msgspec.Struct) -> Iterator[tuple[str, object]]:
    """The fields that are not as their default."""
    for field in msgspec.structs.fields(type(value)):
        given = getattr(value, field.name)
        if given != field.default:
            yield field.name, given


def word(value: object) -> str:
    """A value in a row. Texts with blanks are quoted."""
    if isinstance(value, float):
        return f"{round(value, 4):g}" if abs(value) < 1e5 else f"{value:.1f}"
    if isinstance(value, msgspec.Struct):
        return f"({row(value)})"
    if isinstance(value, tuple):
        return "[" + ", ".join(word(one) for one in value) + "]"
    if isinstance(value, str):
        return value if value and value.isprintable() and " " not in value else repr(value)
    return str(value)
