"""Write a man page from the parsers and the key bindings: python -m tools.write_man sgmon.1"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from textual.binding import Binding

from sgmon import __version__
from sgmon.config import OPTIONS
from tui_app.app import SgmonApp
from tui_app.cli import full_parser
from tui_app.help_screen import key_names
from tui_app.no_engine import NoEngine


def quoted(text: str) -> str:
    """Text that roff takes as text."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in ".'" else text


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        value = f" {action.metavar or action.dest.upper()}" if action.option_strings and action.nargs != 0 else ""
        yield f".TP\n.B {quoted(names + value)}\n{quoted((action.help or '').replace('%%', '%'))}"


def page() -> str:
    parser = full_parser()
    commands = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    parts = [
        f'.TH SGMON 1 "" "sgmon {__version__}"',
        f".SH NAME\nsgmon \\- {quoted(parser.description or '')}",
        ".SH SYNOPSIS\n.B sgmon\n[options] | sgmon COMMAND ...",
        ".SH OPTIONS",
        *options(parser),
        ".SH COMMANDS",
    ]
    for name, one in commands.choices.items():
        parts += [f".SS sgmon {name}\n{quoted(one.description or '')}", *options(one)]
    parts.append(".SH KEYS\nThe word behind each is its id for the table [keys] of the configuration.")
    for section, bindings in SgmonApp(NoEngine()).help_sections():
        parts.append(f".SS {section}")
        for key in bindings:
            if isinstance(key, Binding) and key.description:
                parts.append(f".TP\n.B {quoted(key_names(key))}\n{quoted(f'{key.description} ({key.id})')}")
    parts.append(".SH FILES\n.TP\n.B $XDG_CONFIG_HOME/sgmon/config.toml\nchoices; see sgmon config")
    parts.append(".TP\n.B $XDG_STATE_HOME/sgmon\nfinished starts and saved recordings")
    parts.append(".SH ENVIRONMENT")
    parts += [f".TP\n.B {quoted(one.variable)}\n{quoted(one.words)}" for one in OPTIONS]
    parts.append(".TP\n.B NO_COLOR\nno colour at all")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
