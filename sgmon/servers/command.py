"""What a command line runs: the module, script or console script behind the interpreter and its options.

Only what the interpreter itself runs counts: a shell, ``timeout`` or ``tail`` that carries the words in its
arguments runs none of them.
"""

from __future__ import annotations

import shlex
from functools import lru_cache
from typing import NamedTuple

from sgmon.patterns import regex

_PYTHON = regex(r"^(?:python|pypy)[\d.]*\w*(?:-dbg)?$")
#: modules that run another module in the same process
_RUNNERS = frozenset({"debugpy", "pdb", "cProfile", "profile", "trace", "viztracer", "coverage", "memray", "scalene"})


class Command(NamedTuple):
    """kind: module (``python -m NAME``) | script (``python PATH``) | program (anything else; name: its file name).
    tail: the arguments after the name."""

    kind: str
    name: str
    tail: tuple[str, ...] = ()


def words_of(argv: tuple[str, ...]) -> tuple[str, ...]:
    """argv, or the words of a title that was set as one string."""
    return argv if len(argv) != 1 or " " not in argv[0] else _split(argv[0])


@lru_cache(maxsize=64)
def _split(title: str) -> tuple[str, ...]:
    """Every family asks it of each process."""
    try:
        return tuple(shlex.split(title))
    except ValueError:
        return tuple(title.split())


def is_python(argv: tuple[str, ...]) -> bool:
    """Whether the program is a Python interpreter."""
    words = words_of(argv)
    return bool(words) and bool(_PYTHON.match(words[0].rsplit("/", 1)[-1]))


@lru_cache(maxsize=64)
def command_of(argv: tuple[str, ...]) -> Command | None:
    """The command of an argv as /proc/PID/cmdline gives it; None for ``python -c`` and a bare interpreter."""
    words = words_of(argv)
    if not words:
        return None
    if is_python(words):
        return _python(words[1:])
    return Command("program", words[0].rsplit("/", 1)[-1], words[1:])


def _python(rest: tuple[str, ...]) -> Command | None:
    """``rest``: what follows the interpreter. Its options: cpython Modules/getopt and ``python --help``."""
    at = 0
    while at < len(rest):
        word = rest[at]
        if not word.startswith("-") or word == "-":
            return Command("script", word, rest[at + 1 :])
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        letters = word[1:]
        for place, letter in enumerate(letters):
            inline = letters[place + 1 :]
            if letter == "c":
                return None
            if letter == "m":
                return _module(inline, rest[at + 1 :]) if inline else _module_of(rest[at + 1 :])
            if letter in "WX":
                at += 0 if inline else 1
                break
        at += 1
    return None


def _module_of(words: tuple[str, ...]) -> Command:
    return _module("".join(words[:1]), words[1:])


def _module(name: str, tail: tuple[str, ...]) -> Command:
    if name in _RUNNERS and "-m" in tail:
        return _module_of(tail[tail.index("-m") + 1 :])
    return Command("module", name, tail)
