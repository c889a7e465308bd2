"""Copies of records, and a value set in a frozen one."""

from __future__ import annotations

from typing import Any

from ._records import values_of


def replace(record: Any, **changes: Any) -> Any:
    """A copy with other values. TypeError for a name that is no field."""
    made = object.__new__(type(record))
    values = made.__dict__
    values.update(record.__dict__)
    for name, value in changes.items():
        if name not in values:
            raise TypeError(f"`{type(record).__name__}` has no field '{name}'")
        values[name] = value
    if hasattr(made, "__post_init__"):
        made.__post_init__()
    return made


def force_setattr(record: Any, name: str, value: Any) -> None:
    """Set a field, also of a frozen record."""
    record.__dict__[name] = value


def asdict(record: Any) -> dict[str, Any]:
    """Name -> value, one level."""
    return dict(zip(record.__struct_fields__, values_of(record)))


def astuple(record: Any) -> tuple[Any, ...]:
    """The values, one level."""
    return values_of(record)
