"""Draw the pictures of the README and the docs: moments of recordings as SVG and PNG, and one animation.

    python screenshots/make.py                         all of them, into this folder
    python screenshots/make.py REC.jsonl.gz T OUT.svg  one moment, T in seconds, at 120x40
    python screenshots/make.py REC.jsonl.gz T OUT.svg 80x24 3 z       ... with keys pressed before

Nothing is made by hand: change the screen, run this, look at the difference. PNG needs the library cairo
(Debian: libcairo2).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import animation
from moments import RECORDINGS, few_colours, picture_of, svg_at

HERE = Path(__file__).resolve().parent
#: pixels of a column, and of the frame around all of them
CELL, FRAME = 12.2, 18


class Shot(NamedTuple):
    """One picture: which moment, how large, which keys before. has_light: also with the light theme."""

    name: str
    recording: str
    t: float
    size: tuple[int, int] = (120, 40)
    keys: tuple[str, ...] = ()
    has_light: bool = False


SHOTS = (
    Shot("stuck-rank-120x40", "demo-stuck-rank.jsonl.gz", 1e9, has_light=True),
    Shot("stuck-rank-200x50", "demo-stuck-rank.jsonl.gz", 1e9, (200, 50)),
    Shot("stuck-rank-stacks", "demo-stuck-rank.jsonl.gz", 1e9, keys=("D",)),
    Shot("h200x2-graph-capture", "h200x2-cold.jsonl.gz", 158.0, has_light=True),
    Shot("h200x2-nccl-spin", "h200x2-nccl-spin.jsonl.gz", 150.0, has_light=True),
    Shot("h200x2-nccl-spin-why", "h200x2-nccl-spin.jsonl.gz", 150.0, keys=("v",)),
    Shot("h200x2-nccl-spin-gpu", "h200x2-nccl-spin.jsonl.gz", 150.0, keys=("2", "enter")),
    Shot("h200x2-nccl-spin-zoomed", "h200x2-nccl-spin.jsonl.gz", 150.0, keys=("2", "2")),
    Shot("h200x2-worker", "h200x2-nccl-spin.jsonl.gz", 150.0, keys=("3", "enter")),
    Shot("h200x2-loading-80x24", "h200x2-stop-load.jsonl.gz", 30.0, (80, 24)),
    Shot("stopped-rank-80x24", "gpu-tp2-stop1.jsonl.gz", 45.0, (80, 24)),
    Shot("stopped-rank-60x15", "gpu-tp2-stop1.jsonl.gz", 45.0, (60, 15)),
    Shot("waiting-for-a-node", "gpu-hang-nnodes.jsonl.gz", 44.0),
    Shot("out-of-memory", "gpu-oom-frac.jsonl.gz", 1e9, has_light=True),
    Shot("ready", "h200x2-warm.jsonl.gz", 65.0, has_light=True),
    Shot("h200x2-replica-killed", "h200x2-live-dp2-kill-ready.jsonl.gz", 174.5),
    Shot("vllm-stopped-rank", "vllm-live-h200-stop-capture.jsonl.gz", 70.0),
)


def write(shot: Shot, path: Path, out: Path, theme: str = "dark") -> None:
    """SVG, and PNG beside it."""
    svg = svg_at(path, shot.t, shot.size, theme, shot.keys)
    out.write_text(svg, encoding="utf-8")
    width = round(CELL * shot.size[0]) + FRAME
    (picture,) = few_colours([picture_of(svg, width)], svg, 96)
    picture.save(out.with_suffix(".png"), optimize=True)
    print(out)


def main(args: Sequence[str]) -> int:
    if not args:
        for shot in SHOTS:
            write(shot, RECORDINGS / shot.recording, HERE / f"{shot.name}.svg")
            if shot.has_light:
                write(shot, RECORDINGS / shot.recording, HERE / f"{shot.name}-light.svg", "light")
        animation.write(HERE / "stops-and-goes-on.gif")
        print(HERE / "stops-and-goes-on.gif")
        return 0
    if len(args) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    width, _, height = (args[3] if len(args) > 3 else "120x40").partition("x")
    shot = Shot("one", args[0], float(args[1]), (int(width), int(height)), tuple(args[4:]))
    write(shot, Path(args[0]), Path(args[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
