"""All that is read in each log that is kept here, against __snapshots__/test_goldens (``make goldens``).

Each log comes in twenty pieces, a second apart, cut where it may be: in the middle of lines, too.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from sgmon.analyse.log.fold import LogFold
from sgmon.analyse.log.lines import describe
from sgmon.analyse.log.newest_first import is_newest_first, oldest_first, renumbered
from sgmon.analyse.log.own_probe import is_activity
from sgmon.analyse.log.summary import headline
from sgmon.model import LogReading, LogState
from sgmon.servers import registry
from tests.golden import MEANT, Texts, row
from tests.log.loading import CASES
from tests.log.state_rows import line_rows, rows
from tests.log.test_shapes import SHAPES

LINES = Path(__file__).parent / "lines"
#: made up, for what no kept log shows
TEXTS = Path(__file__).parent / "texts"
PIECES = 20
#: 30 November 2026, the day after the real starts
EPOCH = 1_796_000_000.0
LOGS = {
    "-".join(path.relative_to(root).parts).removesuffix(".gz").removesuffix(".log"): path
    for root in (CASES, SHAPES, TEXTS)
    for path in sorted([*root.rglob("*.log"), *root.rglob("*.log.gz")])
}


pytestmark = pytest.mark.usefixtures("utc")


def read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


def fold(text: str) -> tuple[LogState, list[str]]:
    """The state at the end; the headline after each piece that changed it."""
    made, heads, size = LogFold(epoch=EPOCH), [""], -(-len(text) // PIECES)
    for piece in range(PIECES):
        made.feed(LogReading("server.log", text=text[piece * size : (piece + 1) * size]), float(piece))
        head = headline(made.state())
        if head != heads[-1].partition(": ")[2]:
            heads.append(f"{piece}: {head}")
    return made.state(), heads[1:]


@pytest.mark.parametrize("name", LOGS)
def test_the_reading_is_as_it_was(name: str, snapshot: SnapshotAssertion) -> None:
    text = read(LOGS[name])
    back = is_newest_first(text)
    ordered, numbers = oldest_first(text) if back else (text, [])
    state, heads = fold(ordered)
    state = renumbered(state, numbers) if back else state
    told = [*rows(state), "", "after each piece:", *heads, "", "lines:", *line_rows(text, EPOCH), ""]
    assert "\n".join(told) == snapshot(extension_class=Texts), MEANT


@pytest.mark.parametrize("name", ["sglang", "vllm", "others"])
def test_a_line_alone_is_as_it_was(name: str, snapshot: SnapshotAssertion) -> None:
    """Each line as a log of its own, read with the rules of its family."""
    rules = registry.get(name).log or registry.log_rules()[0]
    told: list[str] = []
    for line in (LINES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        made = LogFold(rules, epoch=EPOCH)
        made.feed(LogReading("server.log", text=f"{line}\n"), 1.0)
        state = made.state()
        told += [line, f"  {row(describe(1, line, rules, EPOCH), 'number', 'text')}".rstrip()]
        told += [] if is_activity(rules, line) else ["  no sign of activity"]
        told += [f"  {one}" for one in rows(replace(state, last_line=None), summary=False)]
    assert "\n".join([*told, ""]) == snapshot(extension_class=Texts), MEANT
