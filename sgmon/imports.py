"""Imports of libraries without a module that they import in vain."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident


class _Absent:
    """A finder to which modules are not installed, for one thread: others may import them meanwhile."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._thread = get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self._names and get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is left out here", name=name)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """While it lasts, what this thread imports finds these modules missing, unless they are imported already. For a
    library that does without them where they are not installed."""
    absent = _Absent(names)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)
