"""Stack dumps as rows: the server's own frames lit, library frames dim, innermost on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sgmon.model import Frame, StackClass, StackDump, Thread
from sgmon.servers.registry import get, role_label
from sgmon.text import clean
from sgmon.units import duration, plural, rank_list
from widgets.line import Line, cell, cell_len, crop_text, wrap
from widgets.phases import natural_key

_FUNCTION_WIDTH = 44


class StackOptions(NamedTuple):
    """What the reader wants to see."""

    threads: bool = False  # other threads too
    width: int = 120
    family: str = ""  # of the server: what its roles are called

    def is_own(self, frame: Frame) -> bool:
        """Whether a frame is the server's own code."""
        return frame.file.startswith(get(self.family).stacks.packages)


def newest_dumps(dumps: Sequence[StackDump]) -> list[StackDump]:
    """The newest dump of each process, in rank order."""
    newest: dict[int, StackDump] = {}
    for item in dumps:
        if item.pid not in newest or item.t >= newest[item.pid].t:
            newest[item.pid] = item
    return sorted(newest.values(), key=lambda d: (natural_key(d.rank or "~"), d.pid))


def class_lines(classes: Sequence[StackClass], options: StackOptions) -> list[Line]:
    """Merged view: first which ranks are where, the outliers on top; then their frames, common outer ones once."""
    ordered = sorted(classes, key=lambda c: (not c.outlier, len(c.ranks)))
    several = len(ordered) > 1
    rows: list[Line] = []
    if several:
        rows += [line for item in ordered for line in summary_lines(item, options)]
        rows.append(())
    outer = common_outer([item.frames for item in ordered]) if several else 0
    for item in ordered:
        rows.append(_class_head(item, several))
        if not several:
            rows += _note_lines(item, options.width)
        rows += frame_lines(item.frames[: len(item.frames) - outer], options)
        if outer:
            rows.append((("  ", ""), ("│", "rule"), (f" + {outer} outer frames, the same for all", "dim")))
        rows.append(())
    return rows


def summary_lines(item: StackClass, options: StackOptions) -> list[Line]:
    """ "! TP3  1 rank  in safetensors_weights_iterator"."""
    mark = ("!" if item.outlier else " ", "odd")
    place = next((frame for frame in item.frames if options.is_own(frame)), None)
    words = clean(place.function, 60) if place is not None else "no frame of the server"
    line: Line = (
        mark,
        cell(crop_text(clean(rank_list(item.ranks), 40), 15), 16, "odd" if item.outlier else "strong"),
        cell(plural(len(item.ranks), "rank"), 9, "dim"),
        ("in ", "dim"),
        (words, "accent"),
        ("  moves between samples" if item.moving else "", "ok"),
    )
    note = clean(item.note, 300)
    return wrap((*line, (f"  {note}" if note else "", "dim")), options.width, indent=26)


def common_outer(stacks: Sequence[Sequence[Frame]]) -> int:
    """How many outer frames all stacks share, when there are enough to be worth one row."""
    count = 0
    for level in zip(*(reversed(stack) for stack in stacks), strict=False):
        if any(frame != level[0] for frame in level):
            break
        count += 1
    count = min(count, min((len(stack) for stack in stacks), default=0) - 1)
    return count if count >= 3 else 0


def _class_head(item: StackClass, several: bool) -> Line:
    who = clean(rank_list(item.ranks), 60)
    badge = (" ! OUTLIER ", "badge-warn") if item.outlier and several else ("", "")
    count = f"  {plural(len(item.ranks), 'rank')}"
    return ((f" {who} ", "odd" if item.outlier and several else "strong"), badge, (count, "dim"))


def _note_lines(item: StackClass, width: int) -> list[Line]:
    return wrap(((f"   {clean(item.note, 300)}", "info"),), width, indent=3) if item.note else []


def frame_lines(stack: Sequence[Frame], options: StackOptions) -> list[Line]:
    """One row per frame, innermost on top. A long path loses its beginning: the line number stays."""
    if not stack:
        return [(("   no Python frame", "dim"),)]
    longest = max(cell_len(clean(frame.function)) for frame in stack) + 2
    function_width = min(_FUNCTION_WIDTH, max(16, options.width // 2), longest)
    room = max(12, options.width - function_width - 4)
    rows: list[Line] = []
    for index, frame in enumerate(stack):
        own = options.is_own(frame)
        mark = ("→", "key") if index == 0 else ("│", "accent" if own else "rule")
        where = clean(frame.file, 200) + (f":{frame.line}" if frame.line is not None else "")
        where = where if len(where) <= room else "…" + where[-(room - 1) :]
        style = "strong" if own else ("dim" if index else "")
        native = " [native]" if frame.native else ""
        rows.append(
            (
                ("  ", ""),
                mark,
                (" ", ""),
                cell(crop_text(clean(frame.function, 160) + native, function_width - 1), function_width, style),
                (where, "info" if own else "dim"),
            )
        )
    return rows


def dump_lines(item: StackDump, options: StackOptions) -> list[Line]:
    """One process: main thread first, others folded to their names."""
    who = clean(item.rank or role_label(options.family, item.role), 24)
    facts = [f"pid {item.pid}"]
    facts += [f"in {_short(item.took_s)}"] if item.took_s is not None else []
    facts += ["native"] if item.native else []
    rows: list[Line] = [((f" {who} ", "strong"), (" · ".join(facts), "dim"))]
    if item.error:
        rows.append((("   no stack: ", "bad"), (clean(item.error, 300), "")))
        for missing in item.missing:
            rows.append((("   why: ", "info"), (clean(missing.why, 200), "")))
            if missing.remedy:
                rows.append((("   fix: ", "key"), (clean(missing.remedy, 200), "accent")))
        return [*rows, command_line(item), ()]
    main, others = item.threads[:1], item.threads[1:]
    for thread in main:
        rows += thread_lines(thread, "main thread", options)
    if others and options.threads:
        for thread in others:
            rows += thread_lines(thread, f"thread {clean(thread.name, 60) or thread.tid}", options)
    elif others:
        names = ", ".join(clean(thread.name, 30) or str(thread.tid) for thread in others[:6])
        more = " ..." if len(others) > 6 else ""
        rows.append(((f"   + {plural(len(others), 'other thread')} (t shows them): {names}{more}", "dim"),))
    return [*rows, command_line(item), ()]


def thread_lines(thread: Thread, name: str, options: StackOptions) -> list[Line]:
    """A thread with its frames."""
    gil = "  holds the GIL" if thread.owns_gil else ""
    return [((f"   {name}", "info"), (gil, "warn")), *frame_lines(thread.frames, options)]


def command_line(item: StackDump) -> Line:
    """What was run, to repeat by hand."""
    return (("   $ ", "dim"), (clean(item.command, 300), "dim")) if item.command else ()


def _short(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else duration(seconds)
