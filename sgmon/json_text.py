"""Values as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from sgmon.patterns import regex

_SURROGATE = regex("[\ud800-\udfff]")


def as_json(value: object) -> bytes:
    """The value as JSON. Bytes of a name that are no UTF-8, which Python keeps as lone surrogates, become "�"."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_readable(msgspec.to_builtins(value)))


def readable(text: str) -> str:
    """The text as any encoding can hold it: "�" for each lone surrogate."""
    return _SURROGATE.sub("�", text)


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {_readable(name): _readable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_readable(item) for item in value]
    return value
