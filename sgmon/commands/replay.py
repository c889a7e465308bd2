"""``sgmon replay FILE``: the same screen by the same path. The screen is ``tui_app``'s; here are the arguments."""

from __future__ import annotations

import argparse

from sgmon.commands.watching import add_screen_arguments

KEYS = (
    "keys: space pause, . one step, + and - speed, left and right 10 s, [ and ] to the verdict change before and next"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = KEYS
    parser.add_argument("file", metavar="FILE", help="a recording: made by sgmon record, or saved by a watch")
    parser.add_argument(
        "--speed",
        metavar="F",
        type=float,
        default=1.0,
        help="1 = as it was, 10 = ten times as fast, 0 = at once to its end",
    )
    parser.add_argument("--at", metavar="T", default="0", help="begin here, paused: 90s, 5m")
    add_screen_arguments(parser)
