"""Write the table of keys in README.md from the key bindings of the screen.

python -m tools.write_keys
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from textual.binding import Binding

from sgmon.settings import Settings
from tui_app.app import SgmonApp
from tui_app.help_screen import key_names
from tui_app.replay_app import ReplayApp

FILE = Path(__file__).parent.parent / "README.md"
MARK, MARK_END = "<!-- keys -->\n", "<!-- end of keys -->\n"


def table() -> Iterator[str]:
    """One row for each binding that the help page shows; what several pages share comes once."""
    yield "| where | key | does |"
    yield "|---|---|---|"
    seen: set[tuple[str, str]] = set()
    first, *rest = SgmonApp(None, Settings(), None).help_sections()
    for where, bindings in (first, ("in a replay", ReplayApp.BINDINGS), *rest):
        for binding in bindings:
            if not isinstance(binding, Binding) or not binding.description:
                continue
            row = key_names(binding), binding.description
            if row not in seen:
                seen.add(row)
                keys = " ".join(f"`{key}`" for key in row[0].split(" "))
                yield f"| {where} | {keys.replace('|', chr(92) + '|')} | {row[1]} |"


def with_keys(text: str) -> str:
    """README with its table brought up to date. Raises ValueError where it has no place for it."""
    head, begin, rest = text.partition(MARK)
    _, end, tail = rest.partition(MARK_END)
    if not begin or not end:
        raise ValueError(f"{FILE} has no table between {MARK.strip()} and {MARK_END.strip()}")
    return head + begin + "\n".join(table()) + "\n" + end + tail


if __name__ == "__main__":
    FILE.write_text(with_keys(FILE.read_text(encoding="utf-8")), encoding="utf-8")
