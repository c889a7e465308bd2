"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass

#: ok, note (worth knowing), bad (will cost you something), unknown (could not be looked at)
STATUSES = ("ok", "note", "bad", "unknown")


@dataclass(frozen=True, slots=True)
class Check:
    """``name``: what was looked at. ``text``: what was found. ``remedy``: what to do, or a command to copy."""

    group: str
    name: str
    status: str
    text: str
    remedy: str = ""


def read(path: str) -> str | None:
    """The text of a small file, or None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None
