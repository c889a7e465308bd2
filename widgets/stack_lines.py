"""Stack dumps as rows: SGLang's own frames lit, library frames dim, innermost on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sgmon.model import Frame, StackClass, StackDump, Thread
from sgmon.text import clean
from sgmon.units import age, duration, plural, rank_list
from widgets.line import Line, cell, cell_len
from widgets.phases import natural_key

_FUNCTION_WIDTH = 44


class StackOptions(NamedTuple):
    """What the reader wants to see."""

    threads: bool = False  # other threads too
    libraries: bool = True


def is_ours(frame: Frame) -> bool:
    """Whether a frame is SGLang's own code."""
    return frame.file.startswith("sglang/") or frame.file.startswith("sgl_kernel/")


def main_thread(dump: StackDump) -> Thread | None:
    """The main thread: py-spy's "MainThread", else the one whose id is the pid, else the first."""
    for thread in dump.threads:
        if thread.name == "MainThread" or thread.tid == dump.pid:
            return thread
    return dump.threads[0] if dump.threads else None


def newest_dumps(dumps: Sequence[StackDump]) -> list[StackDump]:
    """The newest dump of each process, in rank order."""
    newest: dict[int, StackDump] = {}
    for item in dumps:
        if item.pid not in newest or item.t >= newest[item.pid].t:
            newest[item.pid] = item
    return sorted(newest.values(), key=lambda d: (natural_key(d.rank or "~"), d.pid))


def own_classes(dumps: Sequence[StackDump]) -> tuple[StackClass, ...]:
    """Ranks by the place of their main thread, the smallest group first: that is the odd one."""
    groups: dict[tuple[Frame, ...], list[str]] = {}
    for item in newest_dumps(dumps):
        thread = main_thread(item)
        if thread is not None:
            groups.setdefault(thread.frames, []).append(item.rank or item.role or str(item.pid))
    ordered = sorted(groups.items(), key=lambda pair: len(pair[1]))
    odd = len(ordered) > 1 and len(ordered[0][1]) < len(ordered[-1][1])
    return tuple(
        StackClass(ranks=tuple(ranks), frames=stack, odd=odd and index == 0)
        for index, (stack, ranks) in enumerate(ordered)
    )


def class_lines(classes: Sequence[StackClass]) -> list[Line]:
    """Merged view: who stands where. The odd ones come first."""
    rows: list[Line] = []
    several = len(classes) > 1
    for item in sorted(classes, key=lambda c: (not c.odd, len(c.ranks))):
        who = clean(rank_list(item.ranks), 60)
        count = plural(len(item.ranks), "rank")
        badge = (" ! DIFFERS ", "badge-warn") if item.odd and several else ("", "")
        moving = ("  moves between samples", "ok") if item.moving else ("", "")
        place = innermost_own(item.frames)
        head: Line = ((f" {who} ", "odd" if item.odd and several else "strong"), badge, (f" {count}", "dim"))
        if place is not None:
            head = (*head, ("  in ", "dim"), (clean(place.function, 60), "accent"))
        rows.append((*head, moving))
        if item.note:
            rows.append(((f"   {clean(item.note, 200)}", "info"),))
        rows += frame_lines(item.frames)
        rows.append(())
    return rows


def innermost_own(stack: Sequence[Frame]) -> Frame | None:
    """The innermost frame of SGLang's own code: where it stands, in SGLang's words."""
    return next((frame for frame in stack if is_ours(frame)), None)


def frame_lines(stack: Sequence[Frame]) -> list[Line]:
    """One row per frame, innermost on top."""
    if not stack:
        return [(("   no Python frame", "dim"),)]
    width = min(_FUNCTION_WIDTH, max(cell_len(clean(frame.function)) for frame in stack) + 2)
    rows: list[Line] = []
    for index, frame in enumerate(stack):
        ours = is_ours(frame)
        mark = ("→", "key") if index == 0 else ("│", "accent" if ours else "rule")
        where = clean(frame.file, 120) + (f":{frame.line}" if frame.line is not None else "")
        style = "strong" if ours else ("dim" if index else "")
        native = " [native]" if frame.native else ""
        rows.append(
            (
                ("  ", ""),
                mark,
                (" ", ""),
                cell(clean(frame.function, 160) + native, width, style),
                (where, "info" if ours else "dim"),
            )
        )
    return rows


def dump_lines(item: StackDump, now: float, options: StackOptions) -> list[Line]:
    """One process: main thread first, others folded to their names."""
    who = clean(item.rank or item.role, 24)
    facts = [f"pid {item.pid}", f"taken {age(now - item.t)} ago"]
    facts += [f"in {duration(item.took_s)}"] if item.took_s is not None else []
    facts += [f"Python {clean(item.python, 16)}"] if item.python else []
    facts += ["native"] if item.native else []
    rows: list[Line] = [((f" {who} ", "strong"), (" · ".join(facts), "dim"))]
    if item.error:
        rows.append((("   no stack: ", "bad"), (clean(item.error, 300), "")))
        for missing in item.missing:
            rows.append((("   why: ", "info"), (clean(missing.why, 200), "")))
            if missing.remedy:
                rows.append((("   fix: ", "key"), (clean(missing.remedy, 200), "accent")))
        return [*rows, command_line(item), ()]
    main = main_thread(item)
    if main is not None:
        rows += thread_lines(main, "main thread")
    others = [thread for thread in item.threads if thread is not main]
    if others and options.threads:
        for thread in others:
            rows += thread_lines(thread, f"thread {clean(thread.name, 60) or thread.tid}")
    elif others:
        names = ", ".join(clean(thread.name, 30) or str(thread.tid) for thread in others[:6])
        more = " ..." if len(others) > 6 else ""
        rows.append(((f"   + {plural(len(others), 'other thread')} (t shows them): {names}{more}", "dim"),))
    return [*rows, command_line(item), ()]


def thread_lines(thread: Thread, name: str) -> list[Line]:
    """A thread with its frames."""
    gil = "  holds the GIL" if thread.owns_gil else ""
    return [((f"   {name}", "info"), (gil, "warn")), *frame_lines(thread.frames)]


def command_line(item: StackDump) -> Line:
    """What was run, to repeat by hand."""
    return (("   $ ", "dim"), (clean(item.command, 300), "dim")) if item.command else ()
