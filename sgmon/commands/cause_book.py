"""The user's own cause book, read for the commands and the engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sgmon.config import config_path

if TYPE_CHECKING:
    from sgmon.analyse.stacks.causes import Book

MAX_BYTES = 1 << 20


def user_book_path() -> Path:
    """$XDG_CONFIG_HOME/sgmon/causes.toml"""
    return config_path().with_name("causes.toml")


def read_user_causes(path: Path | None = None) -> tuple[Book, str]:
    """The user's entries, and words about what is wrong with them ("": nothing). A mistake leaves all of them out."""
    path = path or user_book_path()
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return (), ""
    except OSError as err:
        return (), f"{path} cannot be read: {err.strerror}"
    if len(data) > MAX_BYTES:
        return (), f"{path} is larger than {MAX_BYTES >> 20} MiB: not read"
    from sgmon.analyse.stacks.causes import parse_book  # few have a book of their own
    from sgmon.tables import TableError

    try:
        return parse_book(data.decode("utf-8"), str(path), by_user=True), ""
    except (TableError, UnicodeDecodeError) as err:
        return (), str(err)
