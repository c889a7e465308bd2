"""Records taken apart into plain values, and made from them by their annotations.

An annotation is read as text (``int | None``, ``tuple[Shard, ...]``), because Python 3.8 cannot evaluate it.
"""

from __future__ import annotations

import ast
import enum
import sys
from typing import Any, Callable, Union

from ._records import Struct, values_of

Maker = Callable[[Any], Any]
_PLAIN = (str, int, float, bool, type(None))


class MsgspecError(Exception):
    """The base of all errors."""


class EncodeError(MsgspecError):
    """A value that has no plain form."""


class DecodeError(MsgspecError):
    """A text that is no JSON."""


class ValidationError(DecodeError):
    """A value of another type than asked for."""


def to_builtins(value: Any) -> Any:
    """Dicts, lists and plain values. Raises TypeError for what has no such form."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Struct):
        return {
            key: item if type(item) in _PLAIN else to_builtins(item)
            for key, item in zip(value.__struct_fields__, values_of(value))  # type: ignore[attr-defined]
        }
    if isinstance(value, enum.Enum):
        return to_builtins(value.value)
    if isinstance(value, tuple):
        return tuple([to_builtins(item) for item in value])
    if isinstance(value, (list, set, frozenset)):
        return [to_builtins(item) for item in value]
    if isinstance(value, dict):
        return {to_builtins(key): to_builtins(item) for key, item in value.items()}
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def convert(value: Any, type: Any) -> Any:
    """``value`` (of plain values) as ``type``, a record's class or a plain type. Raises ``ValidationError``."""
    return _of_class(type)(value)


_KNOWN: dict[Any, Maker] = {}


def _of_class(wanted: Any) -> Maker:
    """What makes a value of a class."""
    if wanted in _KNOWN:
        return _KNOWN[wanted]
    if wanted in (Any, object):
        return lambda value: value
    if wanted is float:
        return _float
    if wanted in (str, int, bool, type(None), list, dict):
        return lambda value: _checked(value, wanted)
    if getattr(wanted, "__origin__", None) is Union:
        return _either([_of_class(one) for one in wanted.__args__])
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return lambda value: _member(value, wanted)
    if isinstance(wanted, type) and issubclass(wanted, Struct):
        return lambda value: _record(value, wanted)
    return lambda value: value  # of a type that no record of a collector's requests has


def _record(value: Any, wanted: Any) -> Any:
    if not isinstance(value, dict):
        raise ValidationError(f"Expected `object`, got {_word(value)}")
    makers = _makers(wanted)
    given = {key: makers[key](item) for key, item in value.items() if key in makers}
    lacking = [key for key, one in wanted._fields.items() if one.required and key not in given]
    if lacking:
        raise ValidationError(f"Object missing required field `{lacking[0]}`")
    return wanted(**given)


_MAKERS: dict[Any, dict[str, Maker]] = {}


def _makers(wanted: Any) -> dict[str, Maker]:
    """Field -> what makes its value."""
    if wanted not in _MAKERS:
        found: dict[str, Maker] = {}
        for base in reversed(wanted.__mro__):
            scope = vars(sys.modules[base.__module__])
            for key, annotation in base.__dict__.get("__annotations__", {}).items():
                found[key] = _of_text(annotation, scope)
        _MAKERS[wanted] = found
    return _MAKERS[wanted]


def _of_text(annotation: Any, scope: dict[str, Any]) -> Maker:
    if not isinstance(annotation, str):
        return _of_class(annotation)
    return _of_node(ast.parse(annotation, mode="eval").body, scope)


def _of_node(node: ast.AST, scope: dict[str, Any]) -> Maker:
    if isinstance(node, ast.Constant) and node.value is None:
        return _of_class(type(None))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _of_text(node.value, scope)
    if isinstance(node, ast.Name):
        builtin = {"str": str, "int": int, "float": float, "bool": bool, "object": object, "list": list, "dict": dict}
        return _of_class(scope.get(node.id, builtin.get(node.id, Any)))
    if isinstance(node, ast.BinOp):
        return _either([_of_node(node.left, scope), _of_node(node.right, scope)])
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner: Any = node.slice
        inner = getattr(inner, "value", inner) if type(inner).__name__ == "Index" else inner  # 3.8
        parts = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        return _generic(node.value.id, parts, scope)
    return _of_class(Any)


def _generic(name: str, parts: Any, scope: dict[str, Any]) -> Maker:
    if name == "Union":
        return _either([_of_node(part, scope) for part in parts])
    if name == "Optional":
        return _either([_of_node(parts[0], scope), _of_class(type(None))])
    endless = len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is ...
    if name == "tuple" and not endless:
        makers = [_of_node(part, scope) for part in parts]
        return lambda value: _fixed(value, makers)
    if name in ("tuple", "list", "set", "frozenset"):
        made = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[name]
        item = _of_node(parts[0], scope)
        return lambda value: made([item(one) for one in _checked(value, list)])
    if name in ("dict", "Mapping"):
        key, item = _of_node(parts[0], scope), _of_node(parts[1], scope)
        return lambda value: {key(k): item(v) for k, v in _checked(value, dict).items()}
    return _of_class(Any)


def _either(makers: Any) -> Maker:
    def make(value: Any) -> Any:
        for one in makers:
            try:
                return one(value)
            except ValidationError as err:
                last = err
        raise last

    return make


def _fixed(value: Any, makers: Any) -> Any:
    items = _checked(value, list)
    if len(items) != len(makers):
        raise ValidationError(f"Expected `array` of length {len(makers)}, got {len(items)}")
    return tuple([make(item) for make, item in zip(makers, items)])


def _checked(value: Any, wanted: type) -> Any:
    """The value, if it has the type: a bool is no int, a tuple passes for a list."""
    right = isinstance(value, (list, tuple)) if wanted is list else type(value) is wanted
    if not right:
        raise ValidationError(f"Expected `{wanted.__name__}`, got {_word(value)}")
    return value


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValidationError(f"Expected `float`, got {_word(value)}")
    return float(value)


def _member(value: Any, wanted: Any) -> Any:
    try:
        return wanted(value)
    except ValueError:
        raise ValidationError(f"Invalid enum value {value!r}") from None


def _word(value: Any) -> str:
    return f"`{type(value).__name__}`"
