"""Whether a command line starts an SGLang server, and which of its words are the server's own arguments.

Only what the interpreter itself runs counts: a shell, ``timeout``, ``tail``, or ``sgmon run`` that merely carries
the words in its arguments is no server.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

_PYTHON = re.compile(r"^(?:python|pypy)[\d.]*\w*(?:-dbg)?$")
#: console script and modules that want the subcommand "serve" (sglang >= 0.5.5.post3: cli/main.py)
_SERVE_MODULES = frozenset({"sglang", "sglang.cli.main", "sglang.cli"})
_LAUNCH_MODULES = frozenset({"sglang.launch_server"})
#: modules that run another module in the same process
_RUNNERS = frozenset({"debugpy", "pdb", "cProfile", "profile", "trace", "viztracer", "coverage", "memray", "scalene"})
#: 0.5.2 retitles its main (entrypoints/http_server.py:1160); sglang_router's launcher titles its servers
_TITLES = ("sglang::http_server", "sglang::server")


class Launch(NamedTuple):
    """form: module | serve | titled. tail: the server's own arguments (() when the title hides them)."""

    form: str
    tail: tuple[str, ...] = ()


def words_of(argv: tuple[str, ...]) -> tuple[str, ...]:
    """argv, or the words of a title that was set as one string."""
    if len(argv) != 1 or " " not in argv[0]:
        return argv
    try:
        return tuple(shlex.split(argv[0]))
    except ValueError:
        return tuple(argv[0].split())


def recognise(argv: tuple[str, ...]) -> Launch | None:
    """The launch that ``argv`` is, or None. Expects the argv as /proc/PID/cmdline gives it."""
    if not argv:
        return None
    if argv[0].startswith(_TITLES):
        return Launch("titled")
    words = words_of(argv)
    first = words[0].rsplit("/", 1)[-1] if words else ""
    if first == "sglang":
        return Launch("serve", words[2:]) if words[1:2] == ("serve",) else None
    if not _PYTHON.match(first):
        return None
    return _python(words[1:])


def _python(rest: tuple[str, ...]) -> Launch | None:
    """``rest``: what follows the interpreter. Its options: cpython Modules/getopt and ``python --help``."""
    at = 0
    while at < len(rest):
        word = rest[at]
        if not word.startswith("-") or word == "-":
            return _script(word, rest[at + 1 :])
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        letters = word[1:]
        for place, letter in enumerate(letters):
            inline = letters[place + 1 :]
            if letter == "c":
                return None
            if letter == "m":
                module, tail = (inline, rest[at + 1 :]) if inline else (rest[at + 1 : at + 2], rest[at + 2 :])
                return _module(module if isinstance(module, str) else "".join(module), tail)
            if letter in "WX":
                at += 0 if inline else 1
                break
        at += 1
    return None


def _module(name: str, tail: tuple[str, ...]) -> Launch | None:
    if name in _LAUNCH_MODULES:
        return Launch("module", tail)
    if name in _SERVE_MODULES:
        return Launch("serve", tail[1:]) if tail[:1] == ("serve",) else None
    if name in _RUNNERS and "-m" in tail:
        inner = tail.index("-m")
        return _module("".join(tail[inner + 1 : inner + 2]), tail[inner + 2 :])
    return None


def _script(path: str, tail: tuple[str, ...]) -> Launch | None:
    name = path.rsplit("/", 1)[-1]
    if name == "sglang" or path.endswith("sglang/cli/main.py"):
        return Launch("serve", tail[1:]) if tail[:1] == ("serve",) else None
    if path.endswith("sglang/launch_server.py"):
        return Launch("module", tail)
    return None


def is_python(argv: tuple[str, ...]) -> bool:
    """Whether the program is a Python interpreter."""
    words = words_of(argv)
    return bool(words) and bool(_PYTHON.match(words[0].rsplit("/", 1)[-1]))
