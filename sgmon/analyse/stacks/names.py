"""Names of frames made short: package-relative files, C++ names without their template arguments."""

from __future__ import annotations

import re
from functools import lru_cache

from sgmon.patterns import regex
from sgmon.text import clean

NAME_LIMIT = 90
FILE_LIMIT = 120

_PACKAGES = regex(r"^.*/(?:site|dist)-packages/")
_STDLIB = regex(r"^.*/lib(?:64)?/python3(?:\.\d+)?t?/")
_CLONE = regex(
    r"\s*\((?:\.[\w.]+|\[clone[^)]*\])\)|\s*\[clone [^\]]*\]|@@?[A-Z][\w.]*$"
    r"|\.(?:isra|constprop|part|cold)\b(?:\.\d+)*"
)
_HASH = regex(r"::h[0-9a-f]{16}$")
_OPERATOR = regex(r"operator\s*(?:<=>|<<=?|>>=?|->\*?|<=?|>=?|\(\))")
_WRAPPERS = regex(r"\b(?:std::__(?:1|cxx11|detail)|std::__ndk1)::")
_ANONYMOUS = regex(r"\(anonymous namespace\)::|\{anonymous\}::|<unnamed>::")
_CV = regex(r"\)\s*(?:const|volatile|noexcept|&{1,2}|\s)+$")
_RETURN = regex(r"^(?:[\w:*&]+\s+(?:const\s*[&*]?\s*)?)+(?=[\w~:]+)")


@lru_cache(maxsize=8192)  # the same few hundred frames come again in every dump
def package_file(path: str, source_tree: str = "") -> str:
    """A source file relative to its package ("torch/cuda/__init__.py"); other paths stay as they are.

    source_tree: regular expression of where the server's own files begin when it runs from a source tree.
    """
    path = clean(path)
    for pattern in (_PACKAGES, _source_tree(source_tree), _STDLIB):
        short, count = pattern.subn("", path, count=1)
        if count:
            path = short
            break
    if len(path) > FILE_LIMIT:
        path = "…" + path[-(FILE_LIMIT - 1) :]
    return path


@lru_cache(maxsize=8)
def _source_tree(beginning: str) -> re.Pattern[str]:
    return re.compile(rf"^.*/(?={beginning or '(?!)'})")


@lru_cache(maxsize=8192)
def function_name(name: str) -> str:
    """A Python or C++ function name for one line: no argument list, no template arguments, no clone marks."""
    name = clean(name)
    if _is_cpp(name):
        name = _shorten_cpp(name)
    if len(name) > NAME_LIMIT:
        name = name[: NAME_LIMIT // 2] + "…" + name[-(NAME_LIMIT // 2 - 1) :]
    return name


def _is_cpp(name: str) -> bool:
    return "::" in name or "(" in name or (" " in name and "<" in name) or _CLONE.search(name) is not None


def _shorten_cpp(name: str) -> str:
    name = _HASH.sub("", name)
    name = _CLONE.sub("", name)
    name = _ANONYMOUS.sub("", name)
    name = _WRAPPERS.sub("std::", name)
    name = _OPERATOR.sub(lambda m: _guard(m[0]), name)
    name = _without(name, "<", ">")
    name = _CV.sub(")", name)
    name = _without(name, "(", ")")
    name = _RETURN.sub("", name.strip())
    return _unguard(name).strip() or "?"


def _guard(operator: str) -> str:
    """Brackets of an operator name hidden from the bracket counters."""
    return operator.replace("<", "\x01").replace(">", "\x02").replace("(", "\x03").replace(")", "\x04")


def _unguard(name: str) -> str:
    return name.replace("\x01", "<").replace("\x02", ">").replace("\x03", "(").replace("\x04", ")")


def _without(name: str, left: str, right: str) -> str:
    """``name`` without what is between ``left`` and ``right``; an open bracket cuts the rest."""
    kept: list[str] = []
    depth = 0
    for char in name:
        if char == left:
            depth += 1
        elif char == right:
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(char)
    return "".join(kept)
