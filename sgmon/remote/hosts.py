"""Which machines, and by which command each is reached."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from sgmon.patterns import regex

#: the user's own ssh, with all that its configuration says; a question (password, host key) is a refusal
SSH = "ssh -o BatchMode=yes -T {}"
PYTHON = "python3"
#: reads this many bytes, which are the rest of the program
_RECEIVE = "import sys;i=sys.stdin.buffer;exec(i.read(int(i.readline())))"
#: names in one list: more are a mistake in its ranges
MOST_NAMES = 4096
_RANGES = regex(r"\[([^\[\]]*)\]")


class HostError(ValueError):
    """Names or a template that cannot be used: one sentence."""


class Reach(Struct, frozen=True):
    """A machine and the command that starts a program there, without a shell here."""

    name: str
    argv: tuple[str, ...]


def reach(name: str, via: str = "", python: str = "") -> Reach:
    """How to start Python on the machine ``name``. via: words, ``{}`` where the name goes. Raises ``HostError``."""
    check_name(name)
    words = _words(via or SSH)
    argv = [word.replace("{}", name) for word in words]
    program = [python or PYTHON, "-I", "-c", _RECEIVE]
    # ssh gives what it gets to a shell of the far machine; the others start it as it is
    by_shell = any(word.rpartition("/")[2] == "ssh" for word in words)
    return Reach(name, (*argv, *([shlex.join(program)] if by_shell else program)))


def is_here(name: str, via: str) -> bool:
    """Whether this machine is meant, which needs no command that reaches it."""
    return name == "localhost" and not via


def here() -> Reach:
    """This machine beside others: a collector of its own, so that all are the same."""
    return Reach(socket.gethostname(), (sys.executable, "-I", "-c", _RECEIVE))


def _words(via: str) -> list[str]:
    try:
        words = shlex.split(via)
    except ValueError as err:
        raise HostError(f"--via {via!r} is no command: {err}") from None
    if not words:
        raise HostError("--via is empty: try 'kubectl exec -i {} --'")
    if not any("{}" in word for word in words):
        raise HostError(f"--via {via!r} has no {{}} where the name of the host goes")
    return words


def check_name(name: str) -> None:
    """Raises ``HostError`` for what a command could take for an option, or is no name."""
    if not name or name.startswith("-"):
        raise HostError(f"{name!r} is no host name: a name does not begin with '-'")
    if any(char.isspace() or not char.isprintable() for char in name):
        raise HostError(f"{name!r} is no host name: it has a blank or a control character")


def in_file(text: str) -> tuple[str, ...]:
    """The names of a file: the first word of each line, without comments; lists with ranges are expanded."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return unique(name for words in lines if words for name in expand(words[0]))


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in their order."""
    return tuple(dict.fromkeys(names))


def expand(nodelist: str) -> tuple[str, ...]:
    """Names of a list as Slurm writes it: "node[01-03,07],login" -> node01, node02, node03, node07, login.

    Several brackets in a name multiply. Raises ``HostError``.
    """
    names: list[str] = []
    for part in _parts(nodelist):
        names.extend(_expanded(part))
        if len(names) > MOST_NAMES:
            raise HostError(f"{nodelist[:60]!r} names more than {MOST_NAMES} hosts")
    return unique(names)


def _parts(nodelist: str) -> Iterator[str]:
    """Cut at the commas outside of brackets."""
    depth = start = 0
    for at, char in enumerate(nodelist):
        depth += (char == "[") - (char == "]")
        if depth not in (0, 1):
            raise HostError(f"{nodelist!r} has brackets without a partner")
        if char == "," and not depth:
            yield nodelist[start:at].strip()
            start = at + 1
    if depth:
        raise HostError(f"{nodelist!r} has brackets without a partner")
    if nodelist[start:].strip():
        yield nodelist[start:].strip()


def _expanded(part: str) -> Sequence[str]:
    match = _RANGES.search(part)
    if match is None:
        return [part] if part else []
    head, rest = part[: match.start()], part[match.end() :]
    return [f"{head}{number}{tail}" for number in _numbers(match[1]) for tail in (_expanded(rest) or [""])]


def _numbers(ranges: str) -> Iterator[str]:
    """ "01-03,7" -> 01, 02, 03, 7: as wide as the first number is written."""
    for piece in ranges.split(","):
        first, dash, last = piece.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise HostError(f"[{ranges}] is no list of numbers")
        low, high = int(first), int(last or first)
        if high < low or high - low >= MOST_NAMES:
            raise HostError(f"[{ranges}] is no range that can be meant")
        yield from (str(number).zfill(len(first)) for number in range(low, high + 1))
