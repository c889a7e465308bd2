"""The user's own keys: those that there are, and what is said of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from textual.keys import REPLACED_KEYS, Keys, _character_to_key, key_to_character

_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
_NAMED = frozenset(key.value for key in Keys if not key.value.startswith("<"))
#: the least likeness of a name that is meant to the one that was written
_NEAR = 0.5


def checked(wanted: Mapping[str, str], ids: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """The keys of each id that can be used, and a sentence on each mistake."""
    usable: dict[str, str] = {}
    mistakes: list[str] = []
    for name, value in wanted.items():
        if name not in ids:
            mistakes.append(f"no key is called {name!r}; {_meant_id(name, ids)}")
            continue
        keys = [key.strip() for key in value.split(",")]
        good = [key for key in keys if is_key(key)]
        mistakes += [
            f"{name!r} = {value!r}: there is no key {key!r}; {_meant(key, _NAMED, _NEAR)}"
            for key in keys
            if key not in good
        ]
        if good:
            usable[name] = ",".join(good)
    return usable, mistakes


def clashes(wanted: Mapping[str, str], places: Iterable[tuple[str, str, str]]) -> list[str]:
    """A sentence on each wanted key that does something else in the same place already. places: (where, id, keys)."""
    keys_of: dict[str, dict[str, set[str]]] = {}
    for where, name, keys in places:
        keys_of.setdefault(where, {})[name] = {_full_name(key.strip()) for key in wanted.get(name, keys).split(",")}
    found: dict[str, None] = {}
    for where, here in keys_of.items():
        for name in here:
            for other, others in here.items():
                for key in sorted(here[name] & others) if name in wanted and other != name else ():
                    if other not in wanted or name < other:
                        found[
                            f"{name!r}: the key {key!r} is that of {other!r} too ({where}); one of them does nothing"
                        ] = None
    return list(found)


def _full_name(key: str) -> str:
    """ "question_mark" of "?", as the bindings have it."""
    return _character_to_key(key) if len(key) == 1 else key


def is_key(name: str) -> bool:
    """Whether a terminal can send a key of this name: "v", "f5", "question_mark", "ctrl+x"."""
    if len(name) == 1 or name in _NAMED:
        return name.isprintable() and name != " "
    *modifiers, last = name.split("+")
    if not _MODIFIERS.issuperset(modifiers):
        return False
    char = key_to_character(REPLACED_KEYS.get(last, last))
    return last in _NAMED or (char is not None and char.isprintable() and last == last.strip())


def _meant_id(name: str, ids: Collection[str]) -> str:
    """The id that was meant, perhaps without the part before its last point: "whi" is "overview.why"."""
    import difflib

    known = {one: one for one in ids}
    for one in ids:
        known.setdefault(one.rpartition(".")[2], one)
    near = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.0)[0]
    return f"did you mean {known[near]!r}? All: sgmon config --keys"


def _meant(name: str, known: Iterable[str], likeness: float) -> str:
    import difflib

    near = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=likeness)
    return f"did you mean {near[0]!r}?" if near else 'keys are written as "v", "f5", "ctrl+x" or "question_mark"'
