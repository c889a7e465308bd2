"""Help texts in the width of the terminal."""

from __future__ import annotations

import argparse
import itertools
import textwrap


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Prose is wrapped; lines that are indented, such as commands and tables, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        rows: list[str] = []
        for is_kept, lines in itertools.groupby(text.splitlines(), key=lambda line: not line or line[0] == " "):
            block = list(lines)
            rows += block if is_kept else textwrap.wrap(" ".join(block), width)
        return "\n".join(indent + row for row in rows)
