"""Write a man page from the parsers and the key bindings: python -m tools.write_man sgmon.1"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from textual.binding import Binding

from sgmon import __version__
from sgmon.config import OPTIONS
from tui_app.app import SgmonApp
from tui_app.cli import full_parser
from tui_app.help_screen import key_names
from tui_app.no_engine import NoEngine

Groups = dict[str, list[argparse.Action]]
FILES = (
    ("$XDG_CONFIG_HOME/sgmon/config.toml", "choices and keys; see sgmon config"),
    ("$XDG_STATE_HOME/sgmon/history.sqlite", "finished starts; see sgmon runs"),
    ("$XDG_STATE_HOME/sgmon/flights", "recordings of the last minutes before a stall or crash; see sgmon replay"),
)


def quoted(text: str) -> str:
    """Text that roff takes as text."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def entry(name: str, words: str) -> str:
    """A term in bold and what it means."""
    return f".TP\n.B {quoted(name)}\n{quoted(words)}"


def option(action: argparse.Action) -> str:
    """One option or argument with its value, its choices and its help."""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    value = choices or str(action.metavar or action.dest.upper())
    if not action.option_strings:
        name = str(action.metavar or action.dest) + (f" {choices}" if choices else "")
    else:
        name = ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")
    return entry(name, (action.help or "").replace("%%", "%"))


def groups_of(parser: argparse.ArgumentParser) -> Groups:
    """The options that a person may give, by the title of their group; without --help."""
    found: Groups = {}
    for group in parser._action_groups:
        shown = [
            action
            for action in group._group_actions
            if action.help != argparse.SUPPRESS
            and not isinstance(action, (argparse._SubParsersAction, argparse._HelpAction))
        ]
        if shown:
            found[group.title or ""] = shown
    return found


def command(parser: argparse.ArgumentParser, shared: Groups) -> Iterator[str]:
    """The options of a command; of a group that sgmon itself has too the name alone, and what it lacks."""
    yield quoted(parser.description or "")
    named = []
    for title, actions in groups_of(parser).items():
        names = {action.option_strings[0] for action in actions if action.option_strings}
        everything = {action.option_strings[0] for action in shared.get(title, ()) if action.option_strings}
        if title != "options" and names and names <= everything:
            lacks = ", ".join(sorted(everything - names))
            named.append(heading(title) + (f" (without {lacks})" if lacks else ""))
        else:
            yield from map(option, actions)
    if named:
        yield f".PP\nAlso, as in OPTIONS: {quoted('; '.join(named))}."
    if parser.epilog:
        yield prose(parser.epilog)


def heading(title: str) -> str:
    """ "which server" of "which server (default: the newest on this machine)"."""
    return title.partition(" (")[0]


def prose(text: str) -> str:
    """Paragraphs of a help text; lines that are indented, such as commands and tables, stay as they are."""
    rows = [".PP"]
    for is_kept, lines in itertools.groupby(text.strip("\n").split("\n"), key=lambda line: line.startswith(" ")):
        words = [quoted(line) or ".sp" for line in lines]
        rows += [".nf", *words, ".fi"] if is_kept else words
    return "\n".join(rows)


def keys() -> Iterator[str]:
    yield ".SH KEYS\nThe word in brackets is the id of what a key does, for the table [keys] of config.toml."
    for section, bindings in SgmonApp(NoEngine()).help_sections():
        yield f".SS {section}"
        for key in bindings:
            if isinstance(key, Binding) and key.description:
                yield entry(key_names(key), f"{key.description} ({key.id})")


def page() -> str:
    parser = full_parser()
    commands = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    shared = groups_of(parser)
    parts = [
        f'.TH SGMON 1 "" "sgmon {__version__}"',
        f".SH NAME\nsgmon \\- {quoted(parser.description or '')}",
        ".SH SYNOPSIS\n.B sgmon\n[options]\n.br\n.B sgmon\nCOMMAND ...",
        ".SH OPTIONS\nWithout a command sgmon shows its dashboard. Options may also stand before a command.",
    ]
    for title, actions in shared.items():
        parts += [f".SS {title}" if title != "options" else "", *map(option, actions)]
    parts.append(".SH COMMANDS\nsgmon COMMAND --help says the same.")
    for name, one in commands.choices.items():
        parts += [f".SS sgmon {name}", *command(one, shared)]
    parts += [".SH EXIT STATUS", *exit_status(parser.epilog or "")]
    parts += keys()
    parts += [".SH FILES", *(entry(name, words) for name, words in FILES)]
    parts += [".SH ENVIRONMENT", *(entry(one.variable, one.words) for one in OPTIONS)]
    parts.append(entry("NO_COLOR", "no colour at all"))
    return "\n".join(filter(None, parts)) + "\n"


def exit_status(epilog: str) -> Sequence[str]:
    """The part of the help of sgmon that names its exit codes."""
    _, title, rest = epilog.partition("exit codes")
    return (prose(title + rest),) if title else ()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
