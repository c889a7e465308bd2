"""The user's own cause book, read for the commands and the engine."""

from __future__ import annotations

import os
from pathlib import Path

from sgmon.analyse.stacks.causes import Cause, own_book, with_user_book
from sgmon.analyse.stacks.tables import TableError

MAX_BYTES = 1 << 20


def user_book_path() -> Path:
    """$XDG_CONFIG_HOME/sgmon/causes.toml"""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "sgmon" / "causes.toml"


def read_book(path: Path | None = None) -> tuple[tuple[Cause, ...], str]:
    """The book with the user's entries, and words about what is wrong with theirs ("": nothing).

    A mistake in the user's file never takes ours away.
    """
    path = path or user_book_path()
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return own_book(), ""
    except OSError as err:
        return own_book(), f"{path} cannot be read: {err.strerror}"
    if len(data) > MAX_BYTES:
        return own_book(), f"{path} is larger than {MAX_BYTES >> 20} MiB: not read"
    try:
        return with_user_book(data.decode("utf-8"), str(path)), ""
    except (TableError, UnicodeDecodeError) as err:
        return own_book(), str(err)
