"""What py-spy printed, as threads: its JSON, and its text (older versions, SGLang's own dumps in the log)."""

from __future__ import annotations

import json
import re

from sgmon.analyse.stacks.names import function_name, package_file
from sgmon.model import Frame, Thread
from sgmon.text import clean

MAX_THREADS = 4096
MAX_FRAMES = 2048

_THREAD = re.compile(r"^Thread (?P<tid>0x[0-9a-fA-F]+|\d+)?\s*\((?P<state>[^)]*)\)(?::? \"(?P<name>.*)\")?\s*$")
_FRAME = re.compile(r"^ {2,}(?P<function>\S.*?) \((?P<file>.*?)(?::(?P<line>\d+))?\)\s*$")
_PYTHON = re.compile(r"^Python v(?P<version>\d+\.\d+\.\d+\S*)", re.MULTILINE)
_NATIVE_FILE = re.compile(r"\.(?:so[\d.]*|c|cc|cpp|cxx|cu|h|hpp|cuh|S)$|(?:^|/)python3[\d.t]*$|^\[|^$")


class ParseError(ValueError):
    """py-spy's output is not what py-spy prints."""


def parse_pyspy(json_text: str) -> tuple[Thread, ...]:
    """The threads in the output of ``py-spy dump --json``, the main thread first. Raises ``ParseError``."""
    try:
        found = json.loads(json_text)
    except (ValueError, RecursionError) as err:
        raise ParseError(f"py-spy's JSON cannot be read: {err}") from err
    if not isinstance(found, list):
        raise ParseError("py-spy's JSON is not a list of threads")
    threads = [_thread(item) for item in found[:MAX_THREADS] if isinstance(item, dict)]
    pid = next((item.get("pid") for item in found if isinstance(item, dict)), None)
    return main_first(threads, pid if isinstance(pid, int) else None)


def parse_text(text: str) -> tuple[Thread, ...]:
    """The threads in the text output of ``py-spy dump`` (also with ``--native``)."""
    threads: list[Thread] = []
    head: re.Match[str] | None = None
    frames: list[Frame] = []
    for line in text.splitlines():
        thread = _THREAD.match(line)
        if thread is not None:
            if head is not None:
                threads.append(_text_thread(head, frames))
            head, frames = thread, []
            continue
        frame = _FRAME.match(line)
        if head is not None and frame is not None and len(frames) < MAX_FRAMES:
            frames.append(_text_frame(frame))
    if head is not None:
        threads.append(_text_thread(head, frames))
    return main_first(threads[:MAX_THREADS], None)


def python_version(text: str) -> str:
    """ "3.11.7" from the header of py-spy's text output, or ""."""
    match = _PYTHON.search(text)
    return match["version"] if match else ""


def main_first(threads: list[Thread], pid: int | None) -> tuple[Thread, ...]:
    """The main thread in front, found by its id or its name; else in py-spy's order."""
    for index, thread in enumerate(threads):
        if (pid is not None and thread.tid == pid) or thread.name == "MainThread":
            return (thread, *threads[:index], *threads[index + 1 :])
    return tuple(threads)


def _thread(item: dict[str, object]) -> Thread:
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
        frames=tuple(_frame(frame) for frame in frames[:MAX_FRAMES] if isinstance(frame, dict)),
    )


def _frame(item: dict[str, object]) -> Frame:
    path = _text(item.get("filename"))
    line = item.get("line")
    return Frame(
        function=function_name(_text(item.get("name")) or "?"),
        file=_best_file(path, _text(item.get("short_filename"))),
        line=line if isinstance(line, int) and line > 0 else None,
        native=is_native(path),
    )


def _best_file(path: str, short: str) -> str:
    """py-spy cuts at a folder without __init__.py ("scheduler.py"); the full path knows the package."""
    found = package_file(path)
    return found if found and not found.startswith(("/", "…")) else package_file(short or path)


def _text_thread(head: re.Match[str], frames: list[Frame]) -> Thread:
    state = head["state"] or ""
    return Thread(
        tid=int(head["tid"], 0) if head["tid"] else None,
        name=clean(head["name"] or "", 80),
        active="active" in state,
        owns_gil="gil" in state,
        frames=tuple(frames),
    )


def _text_frame(match: re.Match[str]) -> Frame:
    return Frame(
        function=function_name(match["function"]),
        file=package_file(match["file"]),
        line=int(match["line"]) if match["line"] and int(match["line"]) > 0 else None,
        native=is_native(match["file"]),
    )


def is_native(path: str) -> bool:
    """Whether a frame of this file is C, C++ or CUDA (py-spy has no flag for it)."""
    return not path.endswith(".py") and not path.startswith("<") and _NATIVE_FILE.search(path) is not None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
