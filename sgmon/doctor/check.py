"""One check of the doctor, and reading a small file."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: note: worth knowing; bad: hides something or will spoil a start; unknown: it could not be read
Status = Literal["ok", "note", "bad", "unknown"]


class Check(Struct, frozen=True):
    """``name``: what was looked at. ``text``: what was found. ``remedy``: what to do, or a command to copy."""

    group: str
    name: str
    status: Status
    text: str
    remedy: str = ""


def read(path: str) -> str | None:
    """The text of a small file, or None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None
