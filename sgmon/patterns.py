"""Regular expressions that are compiled when they are first used.

A look compiles 47 of 195 then, and saves 13 ms of CPU of its 220. A function that makes its own at run time calls
``re.compile``.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_ATTRIBUTES = (
    *("match", "search", "fullmatch", "finditer", "findall", "split", "sub", "subn", "scanner"),
    *("pattern", "flags", "groups", "groupindex"),
)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern of ``re.compile(text, flags)``, compiled when its first attribute is asked for."""
    return cast("re.Pattern[AnyStr]", _Uncompiled(text, flags))


class _Compiled:
    """Has the attributes of a compiled pattern."""


class _Uncompiled(_Compiled):
    def __init__(self, text: Any, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """Compile, and take over all attributes: a class without ``__getattr__`` finds them six times quicker."""
        compiled = re.compile(self._text, self._flags)
        self.__dict__.update({one: getattr(compiled, one) for one in _ATTRIBUTES})
        self.__class__ = _Compiled  # type: ignore[assignment]
        return getattr(compiled, name)
