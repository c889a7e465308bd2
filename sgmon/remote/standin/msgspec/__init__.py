"""What a collector uses of msgspec, for a machine without it: records, copies, JSON, conversion by annotations.

The results are those of the real library (``tests/nodes/test_standin.py`` holds both to it); speed and checks of
class definitions are not.
"""

from __future__ import annotations

from . import json, structs
from ._records import Struct, field
from ._values import DecodeError, EncodeError, MsgspecError, ValidationError, convert, to_builtins

#: a collector prefers the real library where it is as new as this
__version__ = "0.18"

__all__ = [
    "DecodeError",
    "EncodeError",
    "MsgspecError",
    "Struct",
    "ValidationError",
    "convert",
    "field",
    "json",
    "structs",
    "to_builtins",
]
