"""Records as JSON and back."""

from __future__ import annotations

import json as _json
import math
from typing import Any

from ._values import DecodeError, convert, to_builtins


def encode(value: Any) -> bytes:
    """JSON without blanks; what is no number (NaN, infinity) is null."""
    plain = to_builtins(value)
    try:
        text = _json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = _json.dumps(_finite(plain), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def decode(data: Any, *, type: Any = Any) -> Any:
    """The value of a JSON text, as ``type``. Raises ``DecodeError``, ``ValidationError``."""
    try:
        text = bytes(data).decode("utf-8") if isinstance(data, (bytes, bytearray, memoryview)) else data
        found = _json.loads(text, parse_constant=_refuse)
    except UnicodeDecodeError as err:
        raise DecodeError(f"Invalid UTF-8: {err}") from None
    except (ValueError, RecursionError) as err:
        raise DecodeError(f"JSON is malformed: {err}") from None
    return found if type is Any else convert(found, type)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value
