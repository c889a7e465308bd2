"""Order of versions."""

from __future__ import annotations

from functools import lru_cache

from sgmon.patterns import regex

_BEGINS = frozenset("0123456789vV \t\n")
_USUAL = regex(r"([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:\.post([0-9]+))?")


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, int, int, int] | None:
    """(major, minor, micro, post): "0.5.3.post3" -> (0, 5, 3, 3). None for what is no version ("torch", "").

    Candidates, development builds and local parts ("0.5.3rc1+cu128") count as their release.
    """
    usual = _USUAL.fullmatch(version)
    if usual:
        major, minor, micro, post = (int(part or 0) for part in usual.groups())
        return major, minor, micro, post
    if version[:1] not in _BEGINS:
        return None  # "torch": no version, and no reason to import packaging
    try:
        from packaging.version import InvalidVersion, Version  # 4 ms, for the versions that need it
    except ImportError:  # a collector on a machine without it
        return by_its_numbers(version)
    try:
        found = Version(version)
    except InvalidVersion:
        return None
    return found.major, found.minor, found.micro, found.post or 0


_NUMBERS = regex(
    r"\s*[vV]?(?:[0-9]+!)?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:\.[0-9]+)*"
    r"(?:[-_.]?(?:alpha|a|beta|b|preview|pre|c|rc)[-_.]?[0-9]*)?(?:[-_.]?(?:post|rev|r)[-_.]?([0-9]+))?"
)


def by_its_numbers(version: str) -> tuple[int, int, int, int] | None:
    """``release`` without the library: by the numbers that it begins with."""
    found = _NUMBERS.match(version)
    if found is None:
        return None
    major, minor, micro, post = (int(part or 0) for part in found.groups())
    return major, minor, micro, post
