"""Values of arguments, typed or text, as a command line, a config file or a log line gives them."""

from __future__ import annotations

from collections.abc import Mapping

from sgmon.text import MASK, clean, is_secret_name, safe

#: Longest value kept in ``ServerArgs.raw``.
VALUE_LIMIT = 400

_UNSET = (None, "", "None", "null")


class Values:
    """Arguments by name, in any spelling ("tp_size", "--tp-size")."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._found = {_bare(name): value for name, value in values.items()}

    def text(self, *names: str) -> str:
        """The first that is set, clean and masked; "" for none."""
        found = (self._found.get(name) for name in names)
        return next((safe(str(value)) for value in found if value not in _UNSET), "")

    def number(self, *names: str) -> float | None:
        """The first that is a number."""
        found = (_number(self._found.get(name)) for name in names)
        return next((value for value in found if value is not None), None)

    def whole(self, default: int, *names: str) -> int:
        """The first that is a number, cut to a whole one."""
        value = self.number(*names)
        return default if value is None else int(value)

    def truth(self, name: str) -> bool:
        """Whether it is switched on."""
        value = self._found.get(name)
        if isinstance(value, str):
            return value.strip().lower() in ("true", "1", "yes", "on")
        return value is True or (isinstance(value, int) and value != 0)

    def shown(self) -> tuple[tuple[str, str], ...]:
        """All of them for ``ServerArgs.raw``."""
        return tuple((clean(name, 80), shown(name, value)) for name, value in self._found.items())


def shown(name: str, value: object) -> str:
    """One value as it may be shown: secrets masked, cleaned, cut."""
    if value is None:
        return "None"
    if is_secret_name(name.replace("-", "_")) and value not in _UNSET:
        return MASK
    return safe(str(value), VALUE_LIMIT)


def _bare(name: str) -> str:
    return name.strip().lstrip("-").replace("-", "_")


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value in _UNSET:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None
