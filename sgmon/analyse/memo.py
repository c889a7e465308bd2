"""Results of pure functions of frozen objects, kept while the objects are in use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Memo(Generic[Result]):
    """Finds a result again by the identity of the objects it was made from. A stack dump is large: its hash is dear.

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
