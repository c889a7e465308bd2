"""What one vendor's GPU library must give, and the loop that answers for it from a process of its own.

A gateway runs as a child, because such libraries hang in the kernel and crash. It is asked by JSON lines on stdin:
{"ask": "init"}, {"ask": "gpus", "skip": [index...]}; it answers {"hello": 1} once, then {"ok": ...} or
{"error": words, "code": one of the CODES}. What a GPU of an answer may hold is read in ``gpu_answer.py``.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Protocol

#: NVML's numbers; another vendor's errors are mapped to them, so that the parent knows one list
CODES = {
    3: "not supported by this GPU",
    4: "no permission",
    9: "the driver is not loaded",
    12: "no library",
    15: "GPU is lost",
    20: "not enough memory for the call",
    999: "unknown",
}


class Gateway(Protocol):
    """One vendor's library. Its methods may block for ever: before every call it notes the call in its ``Place``."""

    errors: tuple[type[Exception], ...]  # what the library raises, and nothing else

    def init(self) -> dict[str, Any]:
        """Open the library: {"driver": version}."""
        ...

    def gpus(self, skip: frozenset[int]) -> dict[str, Any]:
        """One reading: {"gpus": [{"index": 0, "uuid": ..., "used": bytes, ..., "missing": {value: why}}]}.

        A GPU in ``skip`` is not touched: {"index": 1, "skipped": True}. One that is gone: "error" and "code".
        """
        ...

    def explain(self, err: Exception) -> tuple[str, int]:
        """(words, code) of one of its errors."""
        ...


class Place:
    """The page where the parent reads what we were about to do when we hung; a store, not a system call."""

    def __init__(self, fd: int) -> None:
        self._page = mmap.mmap(fd, 4096) if fd >= 0 else None

    def __call__(self, call: str, gpu: int | None = None) -> None:
        if self._page is not None:
            text = (call if gpu is None else f"{call} {gpu}").encode("ascii")[:95]
            self._page[: len(text) + 1] = text + b"\0"


def serve(open_gateway: Callable[[Place], Gateway]) -> None:
    """Answer requests until stdin ends: arguments PARENT_PID PLACE_FD. Dies with its parent."""
    _die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place = Place(int(sys.argv[2]))
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not look like an answer

    def answer(value: dict[str, Any]) -> None:
        out.write(json.dumps(value) + "\n")
        out.flush()

    gateway = open_gateway(place)
    answer({"hello": 1})
    while line := sys.stdin.readline():
        request = json.loads(line)
        try:
            if request["ask"] == "init":
                answer({"ok": gateway.init()})
            else:
                answer({"ok": gateway.gpus(frozenset(request.get("skip", ())))})
        except gateway.errors as err:
            words, code = gateway.explain(err)
            answer({"error": words, "code": code})


def _die_with(parent: int) -> None:
    """SIGKILL when the parent dies (even while a call hangs), and at once if it is dead already."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        sys.exit(0)
