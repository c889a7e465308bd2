"""The far end: runs the probes of this machine, answers requests from stdin, and ends when nobody asks any more.

It signals nobody, writes no file, runs at a low priority after its first look, and does not outlive its pipe: stdin
at its end, or no request for ``SILENCE_S``, and it is gone, whatever its threads wait in.
"""

from __future__ import annotations

import os
import platform
import queue
import signal
import sys
import threading
import time
from typing import Any, BinaryIO

import msgspec

from sgmon import __version__
from sgmon.json_text import as_json
from sgmon.remote.wire import BYE, HELLO, MARK, PONG

#: a watch asks every few seconds; one that has been silent for so long is not there any more
SILENCE_S = 30.0
#: seconds between two portions
PAUSE_S = 0.2
#: the priority after the first look at the processes, which somebody waits for
NICE = 10
FIRST_LOOK_S = 5.0
_END_S = 1.0


class Collector:
    """One watch's collector. ``out``: where its stream goes."""

    def __init__(self, requests: BinaryIO, out: int) -> None:
        from sgmon.remote.outlet import Outlet

        self._requests = requests
        self._log_waits = threading.Event()
        self._outlet = Outlet(out, self._log_waits, PAUSE_S)
        self._asked: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._heard_t = time.monotonic()
        self._source: Any = None
        self._ended = threading.Event()

    def run(self) -> None:
        """Until the watch says stop, or is gone."""
        self._say({"k": HELLO, "sgmon": __version__, "python": platform.python_version(), "host": platform.node()})
        for work in (self._listen, self._write, self._watch_silence):
            threading.Thread(target=work, name=work.__name__, daemon=True).start()
        while True:
            request = self._asked.get()
            if request is None or request["ask"] == "stop":
                break
            self._do(request)
        if self._source is not None:
            self._source.stop()
        self._say({"k": BYE})
        self._outlet.end()
        self._ended.wait(_END_S)

    def _say(self, what: dict[str, Any]) -> None:
        self._outlet.say(as_json(what))

    def _write(self) -> None:
        self._outlet.run(time.sleep)
        self._ended.set()
        self._asked.put(None)

    def _listen(self) -> None:
        """Pings are answered here, so that nothing else delays them."""
        for line in self._requests:
            self._heard_t = time.monotonic()
            try:
                request = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
            if request.get("ask") == "ping":
                self._say({"k": PONG, "n": request.get("n"), "clock": time.monotonic(), "wall": time.time()})
            else:
                self._asked.put(request)
        self._asked.put(None)

    def _watch_silence(self) -> None:
        """Ends the process when nobody asks, even while everything else hangs."""
        while time.monotonic() - self._heard_t < SILENCE_S:
            time.sleep(1.0)
        os._exit(0)

    def _do(self, request: dict[str, Any]) -> None:
        what = request["ask"]
        if what == "start" and self._source is None:
            self._start(request)
        elif self._source is None:
            return
        elif what == "stacks":
            pids, samples, native = request.get("pids"), request.get("samples", 1), request.get("native", False)
            self._source.request_stacks(pids, samples, native, request.get("why", ""))
        elif what == "ras":
            self._source.request_ras()
        elif what == "choose":
            self._source.choose(request["pid"])

    def _start(self, request: dict[str, Any]) -> None:
        """zero: what this machine's monotonic clock showed when the watch began."""
        from sgmon.collect.probes.base import Clock
        from sgmon.collect.source import LiveSource
        from sgmon.settings import Settings

        settings = msgspec.convert(request["settings"], Settings)
        source = LiveSource(settings, clock=Clock(time.monotonic() - request["zero"]))
        source.watched.log_waits = self._log_waits
        self._source = source
        threading.Thread(target=self._collect, name="collect", daemon=True).start()

    def _collect(self) -> None:
        began = time.monotonic()
        calm = False
        for event in self._source:
            if event.reading is not None:
                self._outlet.take(event)
            if not calm and (event.kind == "procs" or time.monotonic() - began > FIRST_LOOK_S):
                calm = True
                lower_priority()


def lower_priority() -> None:
    """Of all threads and children there are; those to come have that of the thread that makes them."""
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as children:
                tasks = [task, *children.read().split()]
        except OSError:
            tasks = [task]
        for number in tasks:
            try:
                os.setpriority(os.PRIO_PROCESS, int(number), NICE)
            except OSError:
                pass


def main(requests: BinaryIO) -> None:
    """Run on this process's stdin and stdout. What a library prints goes to stderr."""
    out = os.dup(1)
    os.dup2(2, 1)
    os.set_blocking(out, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.write(out, MARK)
    Collector(requests, out).run()
    sys.stderr.flush()
    os._exit(0)
