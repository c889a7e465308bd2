"""What is read in a log, as rows to read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from zlib import crc32

import msgspec
from msgspec.structs import replace

from sgmon.analyse.log.index import LogIndex
from sgmon.analyse.log.summary import exit_code, text
from sgmon.model import LogLine, LogReading, LogState
from tests.golden import row, told, word
from tests.logview.fakes import settle

#: fields of many values: a row each
_MANY = ("milestones", "ranks", "bars", "complaints", "engines")


#: the same for every line that is read alone
_SAME = ("path", "kind", "lines", "last_byte_t", "last_activity_t", "first_t", "last_t", "clock_zero")


def rows(state: LogState, summary: bool = True) -> Iterator[str]:
    """The state, then the summary for people. Without it, what every text has is left out, too."""
    for line in _state(state):
        if summary or line.partition(" ")[0] not in _SAME:
            yield line
    if not summary:
        return
    yield f"exit code {exit_code(state)}"
    yield from (f"| {line}".rstrip() for line in text(state, "server.log").splitlines())


def _state(state: LogState) -> Iterator[str]:
    for name, value in told(state):
        if name == "engines":
            for part in state.engines:
                yield f"engine {part.name}"
                yield from (f"  {line}" for line in _state(part.state))
        elif name in _MANY:
            assert isinstance(value, tuple)
            yield from (f"{name[:-1]} {row(one)}" for one in value)
        elif name == "args" and state.args is not None:
            pairs = crc32(repr(state.args.raw).encode())
            yield f"args {row(replace(state.args, raw=()))} raw={len(state.args.raw)} ({pairs:08x})"
        elif isinstance(value, msgspec.Struct):
            yield f"{name} {row(value)}"
        else:
            yield f"{name} {word(value)}"


def line_rows(text: str, epoch: float) -> Iterator[str]:
    """What the log panel is told of each line; equal ones that follow each other in one row, words of none."""
    index = LogIndex(live=False, epoch=epoch)
    index.follow(LogReading("server.log", text=text, size=len(text)))
    settle(index)
    try:
        found = [line for block in range(index.blocks) for _, line in index.block(block)]
    finally:
        index.close()
    for what, group in groupby(found, key=_kind):
        members = list(group)
        first, last = members[0].number, members[-1].number
        if what:
            yield f"{first}-{last}{what}" if last > first else f"{first}{what}"


def _kind(line: LogLine) -> str:
    return "".join(
        f" {name}={word(value)}"
        for name in ("kind", "milestone", "level", "rank", "t", "body")
        if (value := getattr(line, name)) not in ("", None, 0)
    )
