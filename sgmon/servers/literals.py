"""Arguments as a server prints them into its log: ``Name(a='b', ...)`` or ``{'a': 'b', ...}``; may be cut."""

from __future__ import annotations

import re

from sgmon.patterns import regex

_TOKEN = regex(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[\[({]|[\])}]|,|[^'\"\[\](){},]+|['\"]", re.S)
_NAME_CALL = regex(r"\s*(\w+)=(.*)", re.S)
_NAME_DICT = regex(r"\s*['\"](\w+)['\"]\s*:\s*(.*)", re.S)
#: Most of the 500 values of a line are one of these; ``ast.literal_eval`` takes 14 ms for them.
_CONSTANTS = {"None": None, "False": False, "True": True}
_PLAIN = regex(r"'[^'\\\n\0]*'|\"[^\"\\\n\0]*\"")
_WHOLE = regex(r"-?[1-9][0-9]{0,17}|0")
#: Longest text that is looked at.
LIMIT = 262_144


def values_after(text: str, start: re.Match[str] | None) -> dict[str, object]:
    """Name -> value of what follows ``start``, whose group "call" or "dict" ends in the open bracket. Secrets are in
    clear: not for display. Of a cut line what is whole; {} where ``start`` is None."""
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
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _PLAIN.fullmatch(text):
        return text[1:-1]
    if _WHOLE.fullmatch(text):
        return int(text)
    if len(text) > 20_000:
        return text
    import ast

    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text  # an object's repr: ModelImpl.AUTO, <Enum ...>, Foo(...)
    return value
