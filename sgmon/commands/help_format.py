"""Help texts in the width of the terminal."""

from __future__ import annotations

import argparse
import itertools
import textwrap

#: stands for the names of the families: to know them takes 30 ms, and a first frame shows no help
FAMILIES = "{families}"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Prose is wrapped; lines that are indented, such as commands and tables, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        rows: list[str] = []
        all_lines = named(text).splitlines()
        for is_kept, lines in itertools.groupby(all_lines, key=lambda line: not line or line[0] == " "):
            block = list(lines)
            rows += block if is_kept else textwrap.wrap(" ".join(block), width)
        return "\n".join(indent + row for row in rows)


def named(text: str) -> str:
    """The text with the names of the families."""
    if FAMILIES not in text:
        return text
    from sgmon.servers.registry import labels

    return text.replace(FAMILIES, labels())
