"""Reading a log after the fact: milestones of 1 GB, and a fresh log of NCCL's lines, beside grep and lnav."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import peers
from benchmarks.fold import NCCL, START, many
from benchmarks.registry import Group, Options, Round, in_turns, rows_of
from benchmarks.rows import opening
from benchmarks.rows.starting import once

NCCL_LINES, QUICK_NCCL_LINES = 600_000, 60_000


def milestones() -> str:
    """An extended regular expression with the literals of every milestone of SGLang's catalogue."""
    from sgmon.analyse.log.catalogue import Catalogue
    from sgmon.servers.sglang.log import RULES

    keys = sorted({key for rule in Catalogue(RULES).rules if rule.group == "milestone" for key in rule.keys})
    return "|".join("".join(f"\\{mark}" if mark in r".[]()*+?{}|^$\\" else mark for mark in key) for key in keys)


@contextmanager
def big(options: Options) -> Iterator[Round]:
    with opening.log(options) as path:
        yield in_turns(_programs(path))


@contextmanager
def nccl(options: Options) -> Iterator[Round]:
    with tempfile.TemporaryDirectory(prefix="sgmon-bench-") as folder:
        path = Path(folder) / "server.log"
        path.write_text(START + many(NCCL, QUICK_NCCL_LINES if options.quick else NCCL_LINES))
        lnav = once(peers.in_utf8(peers.find("lnav"), "-n", str(path)), (0,))
        yield in_turns({**_programs(path), "lnav -n": lnav})


def _programs(path: Path) -> dict[str, object]:
    grep = once(
        ["env", f"LC_ALL={os.environ.get('LC_ALL', 'C.UTF-8')}", "grep", "-cE", milestones(), str(path)], (0,)
    )
    return {"sgmon log": once([sys.executable, "-m", "tui_app.cli", "log", "--json", str(path)]), "grep -cE": grep}


GROUPS = (
    Group("milestones", "milestones of 1 GB", rows_of("milestones", "sgmon log/grep -cE", "CPU s", "s"), big),
    Group(
        "nccl", "600,000 lines of NCCL", rows_of("nccl", "sgmon log/grep -cE, sgmon log/lnav -n", "CPU s", "s"), nccl
    ),
)
