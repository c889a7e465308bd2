"""``sgmon replay FILE``: the same screen by the same path. The screen is ``tui_app``'s; here are the arguments."""

from __future__ import annotations

import argparse

HELP = "play a recording back"
KEYS = (
    "keys: space pause, . one step, + and - speed, left and right 10 s, [ and ] to the verdict change before and next"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = KEYS
    parser.add_argument("file", metavar="FILE", help="a recording made by sgmon record, or a saved flight")
    parser.add_argument("--speed", type=float, default=1.0, help="1 = as it was, 10 = ten times as fast")
    parser.add_argument("--at", metavar="T", default="0", help="begin here, paused: 90s, 5m")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    parser.add_argument("--ascii", action="store_true", help="no glyphs beyond ASCII")
    parser.add_argument("--theme", metavar="T", default="", help="a Textual theme")


def run(args: argparse.Namespace) -> int:
    raise NotImplementedError("the dashboard plays recordings: tui_app.watch.watch_replay")
