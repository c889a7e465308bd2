"""What py-spy printed, as threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sgmon.analyse.stacks.names import function_name, package_file
from sgmon.model import Frame, Thread
from sgmon.patterns import regex
from sgmon.text import clean

if TYPE_CHECKING:
    from typing import TypeAlias

MAX_THREADS = 4096
MAX_FRAMES = 2048

_NATIVE_FILE = regex(r"\.(?:so[\d.]*|c|cc|cpp|cxx|cu|h|hpp|cuh|S)$|(?:^|/)python3[\d.t]*$|^\[|^$")


#: (name, file, short file, line) as py-spy has them -> the frame: threads of a pool all wait in the same one
_Known: TypeAlias = "dict[tuple[str, str, str, int | None], Frame]"


class ParseError(ValueError):
    """py-spy's output is not what py-spy prints."""


def parse_pyspy(json_text: str, source_tree: str = "") -> tuple[Thread, ...]:
    """The threads in the output of ``py-spy dump --json``, the main thread first. Raises ``ParseError``.

    source_tree: as in ``package_file``.
    """
    try:
        found = msgspec.json.decode(json_text)
    except (msgspec.DecodeError, ValueError, RecursionError) as err:
        raise ParseError(f"py-spy's JSON cannot be read: {err}") from err
    if not isinstance(found, list):
        raise ParseError("py-spy's JSON is not a list of threads")
    known: _Known = {}
    threads = [_thread(item, source_tree, known) for item in found[:MAX_THREADS] if isinstance(item, dict)]
    pid = next((item.get("pid") for item in found if isinstance(item, dict)), None)
    return main_first(threads, pid if isinstance(pid, int) else None)


def main_first(threads: list[Thread], pid: int | None) -> tuple[Thread, ...]:
    """The main thread in front, found by its id or its name; else in py-spy's order."""
    for index, thread in enumerate(threads):
        if (pid is not None and thread.tid == pid) or thread.name == "MainThread":
            return (thread, *threads[:index], *threads[index + 1 :])
    return tuple(threads)


def _thread(item: dict[str, object], source_tree: str, known: _Known) -> Thread:
    tid = item.get("os_thread_id")
    if not isinstance(tid, int):
        tid = item.get("thread_id")
    frames = item.get("frames")
    frames = frames if isinstance(frames, list) else []
    return Thread(
        tid=tid if isinstance(tid, int) else None,
        name=clean(_text(item.get("thread_name")), 80),
        active=item.get("active") is True,
        owns_gil=item.get("owns_gil") is True,
        frames=tuple(_frame(frame, source_tree, known) for frame in frames[:MAX_FRAMES] if isinstance(frame, dict)),
    )


def _frame(item: dict[str, object], source_tree: str, known: _Known) -> Frame:
    name, path, short = _text(item.get("name")), _text(item.get("filename")), _text(item.get("short_filename"))
    line = item.get("line")
    line = line if isinstance(line, int) and line > 0 else None
    key = name, path, short, line
    found = known.get(key)
    if found is None:
        file = _best_file(path, short, source_tree)
        found = known[key] = Frame(function_name(name or "?"), file, line, native=is_native(path))
    return found


def _best_file(path: str, short: str, source_tree: str) -> str:
    """py-spy cuts at a folder without __init__.py ("scheduler.py"); the full path knows the package."""
    found = package_file(path, source_tree)
    return found if found and not found.startswith(("/", "…")) else package_file(short or path, source_tree)


def is_native(path: str) -> bool:
    """Whether a frame of this file is C, C++ or CUDA (py-spy has no flag for it)."""
    return not path.endswith(".py") and not path.startswith("<") and _NATIVE_FILE.search(path) is not None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
