"""Choices that are kept: ``$XDG_CONFIG_HOME/sgmon/config.toml``, ``SGMON_*``; the theme chosen on the screen.

A flag wins over the environment, that over the file, that over the chosen theme, that over what is built in.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from sgmon.imports import without

with without("typing_extensions"):  # 10 ms; of it msgspec needs nothing that Python 3.11 lacks
    from msgspec import Struct

from sgmon.paths import home, private_folder, write_whole
from sgmon.units import seconds_of


class ConfigError(Exception):
    """A file or variable that cannot be used: which, why, and what would do."""


class Option(Struct, frozen=True):
    """One choice. dest: of the flag; is_inverse: the flag turns it off. A bool is a switch, a str a flag's value."""

    name: str
    dest: str
    default: bool | str
    words: str
    is_inverse: bool = False
    is_duration: bool = False
    range_s: tuple[float, float] = (0.0, 1e8)  # of a duration

    @property
    def variable(self) -> str:
        return f"SGMON_{self.name.upper()}"


class Choice(Struct, frozen=True):
    """The value of an option, and where it came from."""

    option: Option
    value: bool | str
    source: str


OPTIONS = (
    Option("theme", "theme", "auto", "auto, dark, light, or a Textual theme, e.g. nord"),
    Option("ascii", "ascii", False, "no glyphs beyond ASCII"),
    Option("mouse", "no_mouse", True, "take the mouse", is_inverse=True),
    Option("interval", "interval", "1", "seconds between readings of /proc", is_duration=True, range_s=(0.2, 60.0)),
    Option("auto_evidence", "no_auto_evidence", True, "take stacks at the first suspicion", is_inverse=True),
    Option("gpu", "no_gpu", True, "load NVML", is_inverse=True),
    Option("http", "no_http", True, "ask the server's port", is_inverse=True),
    Option("timeout", "timeout", "30m", "sgmon wait gives up after this long", is_duration=True),
    Option("stall", "stall", "30s", "how long a stalled verdict must hold for sgmon wait", is_duration=True),
)
KEYS = "keys"
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def config_path() -> Path:
    """Where the file is, or would be."""
    chosen = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(chosen) if os.path.isabs(chosen) else home() / ".config") / "sgmon" / "config.toml"


def theme_path() -> Path:
    """Where the theme is kept that was chosen on the screen."""
    chosen = os.environ.get("XDG_STATE_HOME", "")
    return (Path(chosen) if os.path.isabs(chosen) else home() / ".local" / "state") / "sgmon" / "theme"


def keep_theme(name: str) -> str:
    """Keep a theme for the next start; returns where another one is written that wins over it, "" without. Raises
    OSError."""
    path = theme_path()
    private_folder(path.parent)
    write_whole(path, [name.encode() + b"\n"])
    source = next(choice.source for choice in choices() if choice.option.name == "theme")
    return "" if source == str(path) else source


def choices(environ: Mapping[str, str] | None = None, path: Path | None = None) -> tuple[Choice, ...]:
    """Every option with its value. Raises ``ConfigError``."""
    environ = os.environ if environ is None else environ
    path = config_path() if path is None else path
    document = read(path)
    return tuple(_choice(option, environ, document, path) for option in OPTIONS)


def keymap(path: Path | None = None) -> dict[str, str]:
    """Other keys, by the id of what they do ("overview.why" = "v,y"). Raises ``ConfigError``."""
    path = config_path() if path is None else path
    table = read(path).get(KEYS, {})
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise ConfigError(f'{path}: [{KEYS}] holds lines such as "overview.why" = "v,y"')
    return {str(name): str(value) for name, value in table.items()}


def read(path: Path) -> dict[str, object]:
    """The file's content, {} without one. Raises ``ConfigError`` for what is no TOML, and for an unknown key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # the home of a service is often /dev/null
        return {}
    except (OSError, UnicodeDecodeError) as err:
        if isinstance(err, PermissionError) and not _can_enter(path.parent):
            return {}  # HOME is another user's, as in a container that gives up root: it is not ours to read
        raise ConfigError(f"{path}: {err}") from err
    document = _parse(text, path)
    known = [option.name for option in OPTIONS] + [KEYS]
    for name in document:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ConfigError(f"{path}: there is no {name!r}; did you mean {near!r}?")
    keys = document.get(KEYS)
    below = [name for name in known[:-1] if isinstance(keys, dict) and name in keys]
    if below:
        raise ConfigError(f"{path}: {below[0]!r} stands below [{KEYS}] and so names a key: put it above that line")
    return document


def _can_enter(folder: Path) -> bool:
    try:
        return folder.is_dir() and os.access(folder, os.X_OK)
    except PermissionError:
        return False


def _parse(text: str, path: Path) -> dict[str, object]:
    """TOML as a dict; imported when there is a file."""
    from sgmon.tables import TableError, parse_document

    try:
        document = parse_document(text, str(path))
    except TableError as err:
        raise ConfigError(f'{err}. A text stands in quotes: theme = "dark"') from err
    return document


def use(parser: argparse.ArgumentParser) -> None:
    """Make the kept choices the defaults of this parser's flags. Raises ``ConfigError``."""
    dests = {action.dest for action in parser._actions}
    for choice in choices():
        option = choice.option
        if option.dest in dests and choice.source != "default":
            value = choice.value is not option.is_inverse if _is_switch(option) else choice.value
            parser.set_defaults(**{option.dest: value})


def as_toml(chosen: tuple[Choice, ...], keys: Mapping[str, str]) -> Iterator[str]:
    """Lines of a file that holds these choices and keys; those that are built in are comments."""
    for choice in chosen:
        value = str(choice.value).lower() if isinstance(choice.value, bool) else _quoted(choice.value)
        mark = "# " if choice.source == "default" else ""
        yield f"# {choice.option.words}"
        yield f"{mark}{choice.option.name} = {value}"
    yield '# other keys, by the id that `sgmon config --keys` lists: "overview.why" = "v,y"'
    yield f"[{KEYS}]" if keys else f"# [{KEYS}]"
    for name, value in keys.items():
        yield f"{_quoted(name)} = {_quoted(value)}"


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON."""
    import json

    return json.dumps(text, ensure_ascii=False)


def _choice(option: Option, environ: Mapping[str, str], document: Mapping[str, object], path: Path) -> Choice:
    if option.variable in environ:
        return Choice(option, _from_text(option, environ[option.variable]), option.variable)
    if option.name in document:
        return Choice(option, _from_file(option, document[option.name], path), str(path))
    if option.name == "theme" and (kept := _kept_theme()):
        return Choice(option, kept, str(theme_path()))
    return Choice(option, option.default, "default")


def _kept_theme() -> str:
    try:
        return theme_path().read_text(encoding="utf-8").strip()[:40]
    except (OSError, UnicodeDecodeError):
        return ""


def _is_switch(option: Option) -> bool:
    return isinstance(option.default, bool)


def _from_text(option: Option, text: str) -> bool | str:
    if not _is_switch(option):
        return _checked(option, text, option.variable)
    if text.lower() not in _SWITCHES:
        raise ConfigError(f"{option.variable}={text}: a switch is 1 or 0")
    return _SWITCHES[text.lower()]


def _from_file(option: Option, value: object, path: Path) -> bool | str:
    if _is_switch(option):
        if not isinstance(value, bool):
            raise ConfigError(f"{path}: {option.name} is true or false, not {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ConfigError(f"{path}: {option.name} is a text or a number, not {value!r}")
    return _checked(option, str(value), str(path))


def _checked(option: Option, text: str, source: str) -> str:
    if not text.isprintable():
        raise ConfigError(f"{source}: {option.name} is no readable text: {text!r}")
    if not option.is_duration:
        return text
    value, (low, high) = seconds_of(text), option.range_s
    if value is None:
        raise ConfigError(f"{source}: {option.name} is a duration such as 1, 90s, 30m or 2h, not {text!r}")
    if not low <= value <= high:
        raise ConfigError(f"{source}: {option.name} is out of range ({low:g} to {high:g} seconds): {text!r}")
    return text
