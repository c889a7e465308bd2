"""The ``server_args=`` line, 3-25 kB: ``ServerArgs(a='b', ...)`` up to 0.5.18, ``{'a': 'b', ...}`` from 0.5.20.

sglang srt/entrypoints/engine.py prints it before any child is started; it carries API keys in clear. To a pipe
it may be cut.
"""

from __future__ import annotations

import ast
import re

from sgmon.model.server import ServerArgs
from sgmon.servers.sglang.server_args import from_mapping

_START = re.compile(r"server_args=(?:(?P<call>ServerArgs\()|(?P<dict>\{))")
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[\[({]|[\])}]|,|[^'\"\[\](){},]+|['\"]", re.S)
_NAME_CALL = re.compile(r"\s*(\w+)=(.*)", re.S)
_NAME_DICT = re.compile(r"\s*['\"](\w+)['\"]\s*:\s*(.*)", re.S)
#: Longest text that is looked at.
LIMIT = 262_144


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
    start = _START.search(text)
    if not start:
        return {}
    naming = _NAME_CALL if start["call"] else _NAME_DICT
    values: dict[str, object] = {}
    for item in _items(text[start.end() : start.end() + LIMIT]):
        named = naming.match(item)
        if named:
            values[named[1]] = _value(named[2].strip())
    return values


def _items(text: str) -> list[str]:
    """The top-level items between commas, up to the closing bracket; an unfinished last one is dropped."""
    items: list[str] = []
    parts: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "'\"":  # a quote that never closes: the line is cut here
            return items
        if token in "[({":
            depth += 1
        elif token in "])}":
            depth -= 1
            if depth < 0:
                items.append("".join(parts))
                return items
        elif token == "," and depth == 0:
            items.append("".join(parts))
            parts = []
            continue
        parts.append(token)
    return items


def _value(text: str) -> object:
    if len(text) > 20_000:
        return text
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text  # an object's repr: ModelImpl.AUTO, <Enum ...>, Foo(...)
    return value
