"""Why a machine was not reached, or was lost, by what the command said: words, a remedy, whether to try again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from sgmon.text import safe

_WIDTH = 160


class Refusal(Struct, frozen=True):
    """final: only a person can change it."""

    why: str
    remedy: str = ""
    final: bool = False


#: (pattern, remedy, final); the first that fits
_KNOWN: tuple[tuple[str, str, bool], ...] = (
    (
        r"Permission denied \(|Too many authentication failures",
        "make `ssh {name}` work without a password: ssh-add, or IdentityFile in ~/.ssh/config",
        True,
    ),
    (
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
        "check the host's key by hand with `ssh {name}`; after a new installation: ssh-keygen -R {name}",
        True,
    ),
    (
        r"Could not resolve hostname|Name or service not known|Temporary failure in name resolution",
        "check the name: `ssh -G {name}` shows what ssh makes of it",
        True,
    ),
    (
        r"(?i)python3?[\w.]*: (?:command )?not found|python.*(?:No such file or directory|executable file not found)"
        r"|execve\(\): python|not found: python|executable file not found.*python",
        "install Python 3.8 or newer there, or name the one that is there with --remote-python",
        True,
    ),
    (
        r"sgmon: Python [\d.]+ is too old here",
        "name a newer Python that is there with --remote-python, e.g. python3.11",
        True,
    ),
    (
        r"\(NotFound\)|No such container|no such (?:container|pod)|Invalid (?:job id|node name)",
        "check the name of the host, pod or container",
        True,
    ),
    (
        r"Bad owner or permissions|Bad configuration option|unknown option",
        "mend the configuration of the command",
        True,
    ),
    (r"Connection refused", "is sshd running on {name}, and is the port right?", False),
    (
        r"timed out|No route to host|Network is unreachable|Host is down",
        "is {name} up, and reachable from here? It is tried again",
        False,
    ),
    (
        r"Connection (?:closed|reset)|Broken pipe|client_loop|lost connection|kex_exchange_identification",
        "the connection was cut; it is tried again",
        False,
    ),
)


def of_output(name: str, stderr: str, code: int | None) -> Refusal:
    """By what the command wrote to stderr, and its exit code."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    for pattern, remedy, final in _KNOWN:
        said = next((line for line in reversed(lines) if re.search(pattern, line)), "")
        if said:
            return Refusal(_words(said), remedy.format(name=name), final)
    said = _telling(lines)
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return Refusal(_words(said) if said else f"the command has ended ({how})", "it is tried again")


def _telling(lines: Sequence[str]) -> str:
    """The last line of what it said."""
    return lines[-1] if lines else ""


def _words(line: str) -> str:
    return safe(line, _WIDTH)
