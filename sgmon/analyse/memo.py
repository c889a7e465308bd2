"""Results of pure functions of frozen objects, found again by the identity of the objects."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Memo(Generic[Result]):
    """Keeps the last few results, for objects of any type.

    The objects are held, so that an id stays theirs. At ``limit`` results all are dropped. Two threads may make the
    same result; none gets a wrong one.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[Hashable, tuple[tuple[object, ...], Result]] = {}

    def get(self, objects: Sequence[object], key: Hashable, make: Callable[[], Result]) -> Result:
        """The result for these objects and this key, made when it is not known."""
        whole = (key, *map(id, objects))
        found = self._known.get(whole)
        if found is not None:
            return found[1]
        result = make()
        if len(self._known) >= self._limit:
            self._known.clear()
        self._known[whole] = (tuple(objects), result)
        return result


class WeakMemo(Generic[Result]):
    """Keeps each result while the objects live that it was made from, and keeps none of them alive.

    For stack dumps: they are large, and their hash is dear. Their class must allow weak references, and a result must
    not hold them. Any thread may ask.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Result, tuple[weakref.ref[object], ...]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, objects: Sequence[object], key: Hashable, make: Callable[[], Result]) -> Result:
        """The result for these objects and this key, made when it is not known."""
        whole = (key, *map(id, objects))
        found = self._known.get(whole)
        if found is not None:
            return found[0]
        result = make()

        def drop(_: object) -> None:  # before another object can get the id
            self._known.pop(whole, None)

        self._known[whole] = (result, tuple(weakref.ref(one, drop) for one in objects))
        return result
