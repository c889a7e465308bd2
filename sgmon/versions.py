"""Order of versions."""

from __future__ import annotations

from functools import lru_cache

from packaging.version import InvalidVersion, Version


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, int, int, int] | None:
    """(major, minor, micro, post): "0.5.3.post3" -> (0, 5, 3, 3). None for what is no version ("torch", "").

    Candidates, development builds and local parts ("0.5.3rc1+cu128") count as their release.
    """
    try:
        found = Version(version)
    except InvalidVersion:
        return None
    return found.major, found.minor, found.micro, found.post or 0
