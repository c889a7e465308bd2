"""What a terminal can do beyond cursor movements and looks, and how that is measured."""

from __future__ import annotations

import os
from typing import NamedTuple

#: A rule, nine more by REP; a blank, seventeen more; and where is the cursor? Not a letter for the first: tmux up to
#: 3.3 repeats ASCII alone.
QUESTION = "─\x1b[9b \x1b[17b\x1b[6n"
#: column (from 0) that a terminal answers -> (repeats, repeats_ascii)
_ANSWERS = {2: (False, False), 19: (False, True), 28: (True, True)}


class Abilities(NamedTuple):
    """erases_in_colour: with the background in use (terminfo's ``bce``). repeats, repeats_ascii: REP, which repeats
    the last character (ECMA-48 8.3.103), any or ASCII alone."""

    erases_in_colour: bool = False
    repeats: bool = False
    repeats_ascii: bool = False

    @property
    def repeats_blanks(self) -> bool:
        return self.repeats or self.repeats_ascii


def stated() -> Abilities:
    """What terminfo says."""
    try:
        import curses
    except ImportError:
        return Abilities()
    try:
        curses.setupterm()
        return Abilities(erases_in_colour=curses.tigetflag("bce") == 1)
    except (curses.error, OSError, ValueError):  # no terminfo, an unknown terminal, no descriptor
        return Abilities()


def measured(can: Abilities, cursor: tuple[int, int]) -> Abilities:
    """What is known after the answer to ``QUESTION``, which was asked at the upper left."""
    column, row = cursor
    if row or column not in _ANSWERS:
        return can
    repeats, repeats_ascii = _ANSWERS[column]
    # tmux erases in colour since 2.4, before it had REP; its terminfo still does not say so
    is_tmux = repeats_ascii and os.environ.get("TERM", "").startswith("tmux")
    return can._replace(
        erases_in_colour=can.erases_in_colour or is_tmux, repeats=repeats, repeats_ascii=repeats_ascii
    )
