"""The ``server_args=`` line, 3-25 kB: ``ServerArgs(a='b', ...)`` up to 0.5.18, ``{'a': 'b', ...}`` from 0.5.20.

sglang srt/entrypoints/engine.py prints it before any child is started; it carries API keys in clear. To a pipe
it may be cut.
"""

from __future__ import annotations

from sgmon.model.server import ServerArgs
from sgmon.patterns import regex
from sgmon.servers.literals import values_after
from sgmon.servers.sglang.server_args import from_mapping

_START = regex(r"server_args=(?:(?P<call>ServerArgs\()|(?P<dict>\{))")


def parse_server_args(text: str) -> ServerArgs | None:
    """The arguments in a ``server_args=`` line, secrets masked, or None. A cut line gives what is whole."""
    values = values_of(text)
    return from_mapping(values) if values else None


def last_in(text: str) -> ServerArgs | None:
    """The arguments in the last whole ``server_args=`` line of a piece of log, or None."""
    at = text.rfind("server_args=")
    end = text.find("\n", at)
    return parse_server_args(text[at:end]) if 0 <= at < end else None


def values_of(text: str) -> dict[str, object]:
    """Name -> value of the line as it stands there (secrets in clear: not for display)."""
    return values_after(text, _START.search(text))
