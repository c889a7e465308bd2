"""Records: classes whose fields are their annotations, with an ``__init__`` made from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NONE: Any = object()  # no default
_MUTABLE = (list, dict, set, bytearray)


class Field:
    """The default of one field: a value, or what makes one."""

    def __init__(self, default: Any = _NONE, default_factory: Any = _NONE) -> None:
        self.default = default
        self.factory = default_factory

    @property
    def required(self) -> bool:
        return self.default is _NONE and self.factory is _NONE


def field(*, default: Any = _NONE, default_factory: Any = _NONE) -> Any:
    """A default that is given as such: a function, or a new value for each record."""
    return Field(default, default_factory)


class StructMeta(type):
    """Makes a record's class: fields of its bases first, then its own annotations."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        frozen: bool = False,
        eq: bool = True,
        kw_only: bool = False,
        weakref: bool = False,  # these always allow it
    ) -> StructMeta:
        fields: dict[str, Field] = {}
        named: list[str] = []  # given by name alone
        for base in reversed(bases):
            fields.update(getattr(base, "_fields", {}))
            named.extend(getattr(base, "_named", ()))
            frozen = frozen or getattr(base, "_frozen", False)
        for key, annotation in namespace.get("__annotations__", {}).items():
            if str(annotation).startswith(("ClassVar", "typing.ClassVar")):
                continue
            fields[key] = _field_of(namespace.pop(key, _NONE))
            if kw_only:
                named.append(key)
        namespace.update(_fields=fields, _named=tuple(named), _frozen=frozen, __struct_fields__=tuple(fields))
        namespace.setdefault("__init__", _init(fields, named, "__post_init__" in namespace or _has_post(bases)))
        if frozen:
            namespace.update(__setattr__=_refuse, __delattr__=_refuse)
        if eq:
            namespace.setdefault("__eq__", _equal)
            namespace["__hash__"] = _hash if frozen else None
        return super().__new__(mcls, name, bases, namespace)


def _field_of(given: Any) -> Field:
    if isinstance(given, Field):
        return given
    if isinstance(given, _MUTABLE):
        return Field(default_factory=given.copy)  # msgspec takes empty ones alone
    return Field(given)


def _has_post(bases: tuple[type, ...]) -> bool:
    return any(hasattr(base, "__post_init__") for base in bases)


def _init(fields: dict[str, Field], named: list[str], post: bool) -> Callable[..., None]:
    """``__init__`` for these fields; a value is put into ``__dict__``, which a frozen record allows."""
    scope: dict[str, Any] = {"_NONE": _NONE}
    first: list[str] = []
    last: list[str] = []
    body: list[str] = []
    for key, one in fields.items():
        word = key
        if one.factory is not _NONE:
            scope[f"_made_{key}"] = one.factory
            word = f"{key}=_NONE"
            body.append(f" _inner_[{key!r}] = _made_{key}() if {key} is _NONE else {key}")
        else:
            if one.default is not _NONE:
                scope[f"_default_{key}"] = one.default
                word = f"{key}=_default_{key}"
            body.append(f" _inner_[{key!r}] = {key}")
        (last if key in named else first).append(word)
    words = ", ".join(["self", *first, *(["*", *last] if last else [])])
    lines = [f"def __init__({words}):", " _inner_ = self.__dict__", *body]
    if post:
        lines.append(" self.__post_init__()")
    exec("\n".join(lines), scope)
    made: Callable[..., None] = scope["__init__"]
    return made


def values_of(record: Any) -> tuple[Any, ...]:
    """The values of its fields, in their order."""
    values = record.__dict__
    return tuple([values[key] for key in record.__struct_fields__])


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise AttributeError(f"immutable type: '{type(self).__name__}'")


def _equal(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    return self is other or values_of(self) == values_of(other)


def _hash(self: Any) -> int:
    return hash((type(self).__name__, values_of(self)))


class Struct(metaclass=StructMeta, eq=False):
    """The base of all records."""

    def __init__(self) -> None:
        """Replaced in each class by one that takes its fields."""

    def __repr__(self) -> str:
        inner = ", ".join(f"{key}={self.__dict__[key]!r}" for key in self.__struct_fields__)  # type: ignore[attr-defined]
        return f"{type(self).__name__}({inner})"

    def __copy__(self) -> Any:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made
