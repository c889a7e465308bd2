"""A server's command line as argparse read it: full names, aliases and abbreviations of flags, and their values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import force_setattr

from sgmon.patterns import regex
from sgmon.servers.family import ReadConfig

_NUMBER = regex(r"^-\d+(?:\.\d*)?$|^-\.\d+$")


class Flags(Struct, frozen=True, eq=False):
    """The flags that a family's parser knows.

    aliases: full name -> other spellings of the same argument. switches: flags without a value. switch_shape: how
    names of further switches begin. model: full name of the model's argument, which may be a bare word.
    """

    aliases: Mapping[str, tuple[str, ...]]
    switches: tuple[str, ...]
    switch_shape: re.Pattern[str]
    model: str
    _names: dict[str, str] = {}  # every spelling -> full name

    def __post_init__(self) -> None:
        names = {other: name for name, others in self.aliases.items() for other in (name, *others)}
        force_setattr(self, "_names", {**names, **{name: name for name in self.switches}})

    def parse(
        self, tail: tuple[str, ...], *, bare_model: bool = False, config: ReadConfig | None = None
    ) -> dict[str, object]:
        """Full argument name -> value (text, or True for a switch). ``config(path)`` reads a ``--config`` file, whose
        values come before the command line's. ``bare_model``: the first bare word is the model."""
        found: dict[str, object] = {}
        bare: list[str] = []
        at = 0
        while at < len(tail):
            word = tail[at]
            at += 1
            if not _is_flag(word):
                bare.append(word)
                continue
            flag, equals, value = word.partition("=")
            name = self.full_name(flag)
            values: list[str] = [value] if equals else []
            while not equals and at < len(tail) and not _is_flag(tail[at]):
                values.append(tail[at])
                at += 1
            keep, extra = self._take(name, values)
            found.pop(name, None)  # the last one wins, and stands last
            found[name] = keep
            bare.extend(extra)
        if bare_model and bare and self.model not in found:
            found[self.model] = bare[0]
        path = found.get("config")
        if config is not None and isinstance(path, str):
            return {**{self.full_name(str(name)): value for name, value in config(path).items()}, **found}
        return found

    def full_name(self, flag: str) -> str:
        """The family's name for a flag: alias and abbreviation resolved. The server accepted it, so a prefix of one
        known flag means that flag (what is ambiguous would have ended argparse); an unknown one keeps its name."""
        bare = flag.lstrip("-").replace("-", "_")
        if bare in self._names:
            return self._names[bare]
        matches = {self._names[known] for known in self._names if known.startswith(bare)}
        return matches.pop() if len(matches) == 1 else bare

    def _take(self, name: str, values: list[str]) -> tuple[object, list[str]]:
        """The value that belongs to the flag, and the words after it that do not."""
        if name in self.switches:
            return True, values
        if name in self.aliases:
            return (values[0] if values else ""), values[1:]
        if not values or self.switch_shape.match(name):
            return True, values
        return " ".join(values), values[1:]  # unknown: it may take several, or the rest may be the model


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)
