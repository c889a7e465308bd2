"""The script of ``sgmon completion SHELL``, by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

#: what is completed where a flag or an argument names one of these
_NAMES = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY}


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Completes commands, options, choices, and the names of files and folders."""
    for action in _actions(parser):
        if isinstance(action.metavar, str) and action.metavar in _NAMES:
            action.complete = _NAMES[action.metavar]  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in set(action.choices.values()):
                yield from _actions(below)
