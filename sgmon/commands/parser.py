"""The parser of every command: a wrong word gets one sentence and what to try, in place of the whole usage."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import NoReturn

from sgmon.commands import USAGE


class Parser(argparse.ArgumentParser):
    """argparse's, with mistakes in our words."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {words_of(message, self._option_string_actions, self.prog)}", file=sys.stderr)
        raise SystemExit(USAGE)


def words_of(message: str, options: Iterable[str], prog: str) -> str:
    """argparse's message in plain words, and what to try. options: all that the command has."""
    hint = f"try: {prog} --help"
    if found := re.match(r"unrecognized arguments: (.+)", message):
        word = found[1].split()[0]
        if not word.startswith("-"):
            return f"{word!r} is one word too many; {hint}"
        return unknown_option(word.partition("=")[0], options, hint)
    if found := re.match(r"the following arguments are required: (.+)", message):
        names = found[1].split(", ")
        return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing; {hint}"
    if found := re.match(r"argument (\S+): invalid (?:int|float) value: (.+)", message):
        return f"{found[1]} {found[2]} is no number; {hint}"
    if found := re.match(r"argument (\S+): expected one argument", message):
        return f"{found[1]} needs a value; {hint}"
    return f"{message.removeprefix('argument ')}; {hint}"


def unknown_option(name: str, options: Iterable[str], hint: str) -> str:
    """What is said of an option that there is not: the nearest that there is, or the hint."""
    import difflib

    near = difflib.get_close_matches(name, list(options), n=1, cutoff=0.7)
    return f"no option {name!r}; " + (f"did you mean {near[0]}?" if near else hint)
