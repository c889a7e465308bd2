"""``sgmon config``: what is chosen, and where each choice came from; ``--write`` makes the file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from sgmon.commands import USAGE
from sgmon.config import Choice, ConfigError, as_toml, choices, config_path, keymap
from sgmon.paths import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--write", action="store_true", help="write the file with what is chosen now")
    parser.add_argument("--path", action="store_true", help="say where the file is")
    parser.add_argument("--keys", action="store_true", help="list what keys do, with the ids for [keys] in the file")


def _rows(chosen: tuple[Choice, ...], keys: Mapping[str, str], path: str) -> Iterator[str]:
    """Name, value, source and meaning of each choice; then the keys of the file."""
    rows = [(one.option.name, _shown(one.value), one.source, one.option.words) for one in chosen]
    rows += [
        (f"keys.{name}", value, path, "the key of what has this id (sgmon config --keys)")
        for name, value in keys.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *cells, words in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)), words])


def _shown(value: bool | str) -> str:
    return str(value).lower() if isinstance(value, bool) else value


def run(args: argparse.Namespace) -> int:
    try:
        chosen = choices()
        path = config_path()
        if args.path:
            print(path)
        elif args.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            print("written:", write_whole(path, [line.encode() + b"\n" for line in as_toml(chosen, keymap())]))
        else:
            print("\n".join(_rows(chosen, keymap(), str(path))))
            print(f"file: {path}{'' if path.exists() else ' (not there: sgmon config --write makes it)'}")
    except (ConfigError, OSError) as err:
        print(f"sgmon: {err}", file=sys.stderr)
        return USAGE
    return 0
