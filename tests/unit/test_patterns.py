"""Regular expressions that are compiled at their first use."""

import gc
import importlib
import pkgutil
import re

import sgmon
from sgmon.patterns import _Uncompiled, regex


def test_a_pattern_is_compiled_at_its_first_use_and_then_is_like_any_other():
    pattern = regex(r"(?P<name>TP)(\d+)", re.IGNORECASE)
    assert type(pattern) is _Uncompiled
    assert pattern.fullmatch("tp12")["name"] == "tp"
    assert type(pattern) is not _Uncompiled
    assert pattern.sub("x", "TP1 TP2") == "x x" and pattern.search("DP1") is None
    assert (pattern.pattern, pattern.groups, dict(pattern.groupindex)) == (r"(?P<name>TP)(\d+)", 2, {"name": 1})


#: what runs when it is imported, or is the far side's
_NOT_IMPORTED = ("sgmon.remote.bootstrap", "sgmon.remote.standin", "sgmon.demo.")


def test_every_pattern_of_sgmon_compiles():
    for module in pkgutil.walk_packages(sgmon.__path__, "sgmon."):
        if not module.name.startswith(_NOT_IMPORTED) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for one in gc.get_objects():
        if type(one) is _Uncompiled:
            re.compile(one._text, one._flags)
