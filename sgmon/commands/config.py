"""``sgmon config``: what is chosen, and where each choice came from; ``--write`` makes the file."""

from __future__ import annotations

import argparse
import sys

from sgmon.commands import USAGE
from sgmon.config import ConfigError, as_toml, choices, config_path, keymap
from sgmon.paths import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--write", action="store_true", help="write the file with what is chosen now")
    parser.add_argument("--path", action="store_true", help="say where the file is")


def run(args: argparse.Namespace) -> int:
    try:
        chosen = choices()
        path = config_path()
        if args.path:
            print(path)
        elif args.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            print(write_whole(path, [line.encode() + b"\n" for line in as_toml(chosen, keymap())]))
        else:
            for one in chosen:
                value = str(one.value).lower() if isinstance(one.value, bool) else one.value
                print(f"{one.option.name:14} {value:12} {one.source:24} {one.option.words}")
            print(f"file: {path}{'' if path.exists() else ' (not there: sgmon config --write makes it)'}")
    except (ConfigError, OSError) as err:
        print(f"sgmon: {err}", file=sys.stderr)
        return USAGE
    return 0
