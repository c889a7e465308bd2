"""The replacements give what the real libraries give."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any, Union

import msgspec
import psutil
import pytest

from sgmon.remote.standin import msgspec as standin
from sgmon.remote.standin import psutil as psutil_standin

Value = Union[bool, int, float, str]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def records(library: Any) -> dict[str, Any]:
    """The same classes, by one of the two libraries."""

    class Inner(library.Struct, frozen=True):
        name: str
        size: int = 0
        ratio: float | None = None

    class Outer(library.Struct, frozen=True):
        inner: Inner
        more: tuple[Inner, ...] = ()
        pair: tuple[str, int] | None = None
        colour: Colour = Colour.RED
        words: dict[str, str] = {}  # noqa: RUF012 - made anew for each record
        values: tuple[tuple[str, Value], ...] = ()

    class Open(library.Struct):
        items: list[int] = library.field(default_factory=list)
        call: Any = library.field(default=len)
        made: str = ""

        def __post_init__(self) -> None:
            library.structs.force_setattr(self, "made", f"of {len(self.items)}")

    class Named(library.Struct, frozen=True, kw_only=True):
        one: int
        two: int = 2

    class Child(Inner, frozen=True):
        age: int = 7

    class Same(library.Struct, frozen=True, eq=False):
        one: int = 1

    found = {cls.__name__: cls for cls in (Inner, Outer, Open, Named, Child, Same)}
    vars(sys.modules[__name__]).update(Inner=Inner)  # annotations are looked up in the module
    return found


@pytest.fixture(params=[msgspec, standin], ids=["msgspec", "standin"])
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Any, dict[str, Any]]]:
    yield request.param, records(request.param)


def test_a_frozen_record_is_made_compared_copied_and_not_changed(made):
    library, kinds = made
    inner, replace = kinds["Inner"], library.structs.replace
    one, other = inner("a", ratio=0.5), inner(name="a", size=0, ratio=0.5)
    assert one == other
    assert hash(one) == hash(other)
    assert one != replace(one, size=3)
    assert replace(one, size=3).size == 3
    assert one.__struct_fields__ == ("name", "size", "ratio")
    assert library.structs.asdict(one) == {"name": "a", "size": 0, "ratio": 0.5}
    assert repr(one).endswith("Inner(name='a', size=0, ratio=0.5)")
    with pytest.raises(AttributeError, match="immutable type"):
        one.size = 4
    for wrong in (lambda: inner(), lambda: inner("a", other=1), lambda: replace(one, other=1)):
        with pytest.raises(TypeError):
            wrong()


def test_defaults_are_made_anew_and_what_follows_from_fields_is_set(made):
    library, kinds = made
    first, second = kinds["Open"](), kinds["Open"]([1, 2])
    first.items.append(1)
    assert (kinds["Open"]().items, second.made, first.call) == ([], "of 2", len)
    assert library.structs.replace(second, items=[1, 2, 3]).made == "of 3"
    with pytest.raises(TypeError):
        hash(first)


def test_fields_of_a_base_names_alone_and_identity(made):
    _, kinds = made
    assert kinds["Child"]("a", 1, age=3).__struct_fields__ == ("name", "size", "ratio", "age")
    assert kinds["Named"](one=1) == kinds["Named"](one=1, two=2)
    with pytest.raises(TypeError):
        kinds["Named"](1)
    assert kinds["Same"]() != kinds["Same"]()


def outer(kinds: dict[str, Any]) -> Any:
    inner = kinds["Inner"]
    values = (("a", True), ("b", 2), ("c", 0.25), ("d", "e"))
    more = (inner("ä\n\u2028", -1), inner("x", ratio=math.nan))
    return kinds["Outer"](inner("a"), more, ("p", 1), Colour.BLUE, {"k": "v"}, values)


def test_json_there_and_back(made):
    library, _ = made
    theirs = records(msgspec)
    expected, plain = msgspec.json.encode(outer(theirs)), msgspec.to_builtins(theirs["Outer"](theirs["Inner"]("a")))
    kinds = records(library)
    data = library.json.encode(outer(kinds))
    assert json.loads(data) == json.loads(expected)
    assert b", " not in data
    back = library.json.decode(data, type=kinds["Outer"])
    assert back.more[1].ratio is None  # NaN is none in JSON
    assert (back.inner, back.pair, back.colour, back.values) == (
        kinds["Inner"]("a"),
        ("p", 1),
        Colour.BLUE,
        outer(kinds).values,
    )
    assert library.to_builtins(kinds["Outer"](kinds["Inner"]("a"))) == plain


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"inner": 1}', '{"inner": {"name": 1}}', '{"inner": {}}', '{"inner": {"name": "a", "size": "b"}}',
     '{"inner": {"name": "a"}, "pair": ["a"]}', '{"inner": {"name": "a"}, "colour": "green"}', "NaN", "[1]"],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_the_same_error(made, text):
    library, kinds = made
    with pytest.raises(library.DecodeError):
        library.json.decode(text.encode(), type=kinds["Outer"])
    assert issubclass(library.ValidationError, library.DecodeError)
    assert issubclass(library.DecodeError, library.MsgspecError)


def test_unknown_fields_are_left_out(made):
    library, kinds = made
    assert library.convert({"name": "a", "later": 1}, kinds["Inner"]) == kinds["Inner"]("a")


def test_every_record_of_a_collector_is_the_same_by_both(monkeypatch):
    """The whole model, made by the replacement: defaults and JSON as the real one gives them."""
    from sgmon import model

    theirs = {name: getattr(model, name) for name in model.__all__}
    for name in [name for name in sys.modules if name == "msgspec" or name.startswith(("msgspec.", "sgmon.model"))]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("msgspec", "msgspec.structs", "msgspec.json"):
        monkeypatch.setitem(sys.modules, name, importlib.import_module(f"sgmon.remote.standin.{name}"))
    ours: ModuleType = importlib.import_module("sgmon.model")
    compared = 0
    for name, real in theirs.items():
        if not (isinstance(real, type) and issubclass(real, msgspec.Struct)):
            continue
        replaced = getattr(ours, name)
        assert replaced.__struct_fields__ == real.__struct_fields__
        needed = real.__struct_fields__[: len(real.__struct_fields__) - len(real.__struct_defaults__)]
        values = dict.fromkeys(needed, 1)
        assert json.loads(standin.json.encode(replaced(**values))) == json.loads(msgspec.json.encode(real(**values)))
        compared += 1
    assert compared > 50


def test_the_machine_is_the_same_by_both():
    assert {name: one.isup for name, one in psutil.net_if_stats().items()} == {
        name: one.isup for name, one in psutil_standin.net_if_stats().items()
    }
    assert psutil_standin.virtual_memory().total == psutil.virtual_memory().total
    assert psutil_standin.swap_memory().total == psutil.swap_memory().total
    assert psutil_standin.virtual_memory().available == pytest.approx(psutil.virtual_memory().available, rel=0.2)
