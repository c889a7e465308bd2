"""The line with the arguments: ``non-default args: {'a': 'b', ...}``, up to 0.9 ``args: Namespace(a='b', ...)``."""

from __future__ import annotations

from sgmon.model.server import ServerArgs
from sgmon.patterns import regex
from sgmon.servers.literals import values_after
from sgmon.servers.vllm.server_args import from_mapping

_START = regex(r"(?:non-default )?args: (?:(?P<call>Namespace\()|(?P<dict>\{))")
#: in every such line
KEY = "args: "


def parse_args_line(text: str) -> ServerArgs | None:
    """The arguments in such a line, secrets masked, or None. A cut line gives what is whole."""
    values = values_after(text, _START.search(text))
    return from_mapping(values) if values else None


def last_in(text: str) -> ServerArgs | None:
    """The arguments in the last whole such line of a piece of log, or None."""
    starts = [match.start() for match in _START.finditer(text)]
    end = text.find("\n", starts[-1]) if starts else -1
    return parse_args_line(text[starts[-1] : end]) if end >= 0 else None
