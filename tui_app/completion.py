"""The script of ``sgmon completion SHELL``, by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

#: what is completed where a flag or an argument names one of these
_NAMES = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY}


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Completes commands, options, choices, and the names of files and folders."""
    from textual.theme import BUILTIN_THEMES

    from sgmon.demo import SCENARIOS

    choices = {"scenario": tuple(SCENARIOS), "theme": ("auto", "dark", "light", *sorted(BUILTIN_THEMES))}
    _add_help(parser)
    for action in _actions(parser):
        if action.dest in choices:
            action.choices = choices[action.dest]
        if isinstance(action.metavar, str) and action.metavar in _NAMES:
            action.complete = _NAMES[action.metavar]  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)


def _add_help(parser: argparse.ArgumentParser) -> None:
    """The words "help COMMAND" and "version", which are no commands with options of their own."""
    commands = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    names = tuple(commands.choices)
    commands.add_parser("help", help="options of sgmon, or of a command").add_argument(
        "of", nargs="?", choices=names, help="a command"
    )
    commands.add_parser("version", help="show program's version number and exit")


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in set(action.choices.values()):
                yield from _actions(below)
