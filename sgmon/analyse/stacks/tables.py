"""The data files beside this module (phases, waits, causes): read once, checked while read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.resources import files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class TableError(ValueError):
    """A data file that cannot be used: which entry, and why."""


def parse_tables(text: str, name: str, origin: str) -> list[Mapping[str, object]]:
    """The entries ``[[name]]`` of a TOML text. Raises ``TableError`` with words for people."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        raise TableError(f"{origin}: not TOML: {err}") from err
    entries = found.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise TableError(f"{origin}: {name} must be written as [[{name}]]")
    unknown = sorted(set(found) - {name})
    if unknown:
        raise TableError(f"{origin}: unknown entry {unknown[0]!r}, expected [[{name}]]")
    return entries


def own_tables(file: str, name: str) -> list[Mapping[str, object]]:
    """The entries of a data file of this package."""
    return parse_tables(own_text(file), name, file)


def own_text(file: str) -> str:
    """The text of a data file of this package."""
    return files("sgmon.analyse.stacks").joinpath(file).read_text(encoding="utf-8")


def words(entry: Mapping[str, object], key: str, default: str = "") -> str:
    """A string of an entry."""
    value = entry.get(key, default)
    if not isinstance(value, str):
        raise TableError(f"{key} must be a string, not {value!r}")
    return value


def word_list(entry: Mapping[str, object], key: str) -> tuple[str, ...]:
    """A list of strings of an entry (a single string counts as a list of one)."""
    value = entry.get(key, [])
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TableError(f"{key} must be a list of strings, not {value!r}")
    return tuple(value)
