"""A day of events through the real engine and the real dashboard, as fast as it goes: does anything grow?

python -m benchmarks.soak [--hours 24] [--limit-s 3600] [--tracemalloc]

Recorded starts come one after the other, each as a server of its own (other pids, other start times, a log that was
truncated or rotated), and a stretch of serving with log traffic behind it. Meanwhile keys open and close the pages.
A sample is taken after each round of all recordings, on the overview and in the same moment of the last server, so that
two samples differ by what has grown alone. The slope is that of the samples after hour 4 (of a shorter watch, after its first
quarter): caches fill before.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from benchmarks.soak_samples import Sample, settled, slope, taken, unpacked
from sgmon.model import Event, LogReading, ProcsReading
from sgmon.recording import codec

if TYPE_CHECKING:
    from sgmon.model import Snapshot
    from tui_app.app import SgmonApp

RECORDINGS = Path(__file__).parents[1] / "tests" / "recordings"
#: healthy, stuck, stopped, killed and out of memory; SGLang and vLLM; with GPUs and stacks
NAMES = (
    *("h200x2-live-stop-load", "h200x2-never-enters", "gpu-tp2", "h200x2-live-kill-warmup", "demo-stuck-rank"),
    *("vllm-live-h200-late-capture", "cpu-tp2-live-oom-all", "h200x2-nccl-spin", "vllm-live-tp2-kill-import"),
)
SERVING_S = 240
LINES_A_SECOND = 5
#: seconds of the watch between two keys
KEY_EVERY_S = 60.0
KEYS = (
    *("v", "escape", "4", "4", "escape", "D", "escape", "3", "enter", "escape", "2", "escape"),
    "?",
    "escape",
    "c",
)
EPOCH = 1_796_000_000.0
_IDS = re.compile(rb'"(pid|ppid|tracer_pid|start_ticks)":(\d{2,})')


class SoakSource:
    """The events of a long watch. press: called each ``KEY_EVERY_S`` of it, and waits for the screen. sample: called
    with the hours after each round of ``names``."""

    replay = ""

    def __init__(
        self,
        folder: Path,
        hours: float,
        press: Callable[[], None],
        sample: Callable[[float], None],
        names: Sequence[str] = NAMES,
    ) -> None:
        self.epoch = EPOCH
        self.t = 0.0
        self.servers = 0
        self.events = 0
        self.length_s = hours * 3600
        self.asked = 0
        self._press, self._sample, self._names = press, sample, names
        self._log = folder / "server.log"
        self._file = open(self._log, "a", encoding="utf-8")
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def request_stacks(self, pids: Sequence[int] | None, samples: int, native: bool, why: str) -> int:
        self.asked += 1
        return self.asked

    def request_ras(self) -> None:
        """There is none."""

    def choose(self, pid: int) -> None:
        """There is one."""

    def __iter__(self) -> Iterator[Event]:
        next_key = 0.0
        while self.t < self.length_s:
            for event in self._round():
                self.events += 1
                if event.t >= next_key:
                    self._press()
                    next_key += KEY_EVERY_S
                if self._stopped:
                    return
                self.t = max(self.t, event.t)
                yield event
            self._sample(self.t / 3600)

    def _round(self) -> Iterator[Event]:
        """Each recording once."""
        for name in self._names:
            self.servers += 1
            began = self.t + 1.0
            change = self._new_log()
            last: dict[str, Event] = {}
            for event in self._recorded(name, began):
                if isinstance(event.reading, LogReading):
                    event = replace(event, reading=self._written(event.reading.text, change))
                    change = ""
                elif event.reading is not None:
                    last[event.kind] = event
                yield event
            yield from self._serving(last)

    def _recorded(self, name: str, began: float) -> Iterator[Event]:
        """The events of one recording as another server's: pids and start times are moved."""
        shift = self.servers * 50
        lines = codec._lines(RECORDINGS / f"{name}.jsonl.gz")
        next(lines)
        decoder = codec.Decoder()
        ticked = 0.0
        for line in lines:
            event = decoder.decode(_IDS.sub(lambda m: b'"%b":%d' % (m[1], int(m[2]) + shift), line))
            if event is None or event.kind in ("baseline", "probe"):
                continue
            while event.kind != "tick" and event.t - ticked >= 1.0:
                ticked += 1.0
                yield Event(began + ticked, "tick")
            ticked = max(ticked, event.t)
            yield replace(event, t=began + event.t)

    def _serving(self, last: dict[str, Event]) -> Iterator[Event]:
        """The last readings again and again, CPU time counted on, and traffic in the log."""
        for second in range(SERVING_S):
            t = self.t + 1.0
            text = "".join(
                f"[2026-11-29 12:{second // 60:02d}:{second % 60:02d} TP0] Decode batch, #running-req: {n}, #token: "
                f"{second * 100 + n}, token usage: 0.{second % 90 + 10}, gen throughput (token/s): {self.events}.{n}\n"
                for n in range(LINES_A_SECOND)
            )
            yield Event(t, "log", self._written(text, ""))
            for event in last.values():
                if event.kind == "procs" and isinstance(event.reading, ProcsReading):
                    moved = tuple(replace(p, cpu_s=(p.cpu_s or 0.0) + second) for p in event.reading.processes)
                    yield Event(t, "procs", replace(event.reading, processes=moved), event.took_s)
                elif event.kind in ("gpu", "port") or (event.kind == "server" and second % 5 == 0):
                    yield replace(event, t=t)
            yield Event(t, "tick")

    def close(self) -> None:
        """Let go of the log."""
        self._file.close()

    def _new_log(self) -> str:
        """Begin the log anew, truncated and rotated by turns; returns the change that a reading of it tells."""
        if self.servers % 2:
            os.truncate(self._log, 0)
            return "truncated"
        self._file.close()
        self._log.rename(self._log.with_suffix(".log.1"))
        self._file = open(self._log, "a", encoding="utf-8")
        return "rotated"

    def _written(self, text: str, change: str) -> LogReading:
        self._file.write(text)
        self._file.flush()
        stat = os.fstat(self._file.fileno())
        size = len(text.encode())
        return LogReading(
            str(self._log), f"{stat.st_dev}:{stat.st_ino}", stat.st_size - size, text, stat.st_size, change=change
        )


class Result(NamedTuple):
    samples: list[Sample]
    events: int
    servers: int
    verdicts: int
    took_s: float
    lines: list[str]  # of code, whose memory has grown most; with tracemalloc alone


class Keys:
    """Presses keys from another thread, and waits until the application has answered each on the screen."""

    ANSWER_S = 60.0

    def __init__(self, app: SgmonApp, loop: asyncio.AbstractEventLoop) -> None:
        self._app, self._loop = app, loop
        self._number = 0
        self._done = threading.Event()

    def next(self) -> None:
        """The next of ``KEYS``."""
        self.press(KEYS[self._number % len(KEYS)])
        self._number += 1

    def press(self, key: str) -> None:
        self._done.clear()
        self._loop.call_soon_threadsafe(self._press, key)
        if not self._done.wait(self.ANSWER_S):
            raise RuntimeError(f"no answer to the key {key} in {self.ANSWER_S:g} s")

    def _press(self, key: str) -> None:
        self._app.simulate_key(key)
        self._app.call_later(self._handed_on)

    def _handed_on(self) -> None:
        """The key is with the page now, behind which this waits, too."""
        if not self._app.screen.call_later(self._app.call_later, self._done.set):
            self._done.set()


async def soak(hours: float, limit_s: float, names: Sequence[str] = NAMES) -> Result:
    """Watch ``hours`` of events; ends earlier after ``limit_s``. The state folder is a temporary one."""
    from sgmon.history.database import StartDatabase
    from sgmon.settings import Settings
    from sgmon.watch.engine import Engine
    from sgmon.watch.persistence import Persistence
    from tui_app.app import SgmonApp

    samples: list[Sample] = []
    traces: list[tracemalloc.Snapshot] = []
    began = time.monotonic()

    def sample(at_hours: float) -> None:
        for _ in range(3):  # back to the overview
            keys.press("escape")
        samples.append(taken(at_hours, len(app.screen_stack)))
        print(f"{at_hours:.1f} h after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        if tracemalloc.is_tracing():
            traces[1 if len(samples) > 3 else 0 :] = [tracemalloc.take_snapshot()]

    def press() -> None:
        keys.next()
        if time.monotonic() - began > limit_s:
            source.stop()

    with tempfile.TemporaryDirectory(prefix="sgmon-soak-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        source = SoakSource(Path(folder), hours, press, sample, names)
        engine = Engine(source, persistence=Persistence(EPOCH, StartDatabase(), simulated=True))
        verdicts = Changes()
        engine.subscribe(verdicts.take)
        app = SgmonApp(engine, Settings(theme="dark"))
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            keys = Keys(app, asyncio.get_running_loop())
            engine.start()
            await asyncio.to_thread(engine.ended.wait)
            engine.stop()
            app.exit()
        source.close()
    if engine.failure:
        raise RuntimeError(engine.failure)
    growth = traces[-1].compare_to(traces[0], "lineno") if len(traces) == 2 else []
    lines = [str(one) for one in sorted(growth, key=lambda one: -one.size_diff)[:25]]
    return Result(samples, source.events, source.servers, verdicts.number, time.monotonic() - began, lines)


class Changes:
    """Counts the changes of the verdict's state."""

    def __init__(self) -> None:
        self.number = 0
        self._state = ""

    def take(self, snapshot: Snapshot) -> None:
        if snapshot.verdict.state != self._state:
            self.number += 1
            self._state = snapshot.verdict.state


def table(result: Result) -> Iterator[str]:
    """The samples and their slopes, as Markdown; then what has grown among the settled ones."""
    samples = result.samples
    yield (
        f"{samples[-1].hours:.1f} h of events: {result.events:,} events, {result.servers} servers, "
        f"{result.verdicts} changes of the verdict's state, in {result.took_s:.0f} s."
    )
    yield ""
    traced = samples[0].traced_mib is not None
    fields = [
        "rss_mib",
        "blocks",
        "heap_mib",
        *(["traced_mib"] if traced else []),
        "fds",
        "threads",
        "widgets",
        "screens",
    ]
    yield "| hours | " + " | ".join(field.replace("_mib", ", MiB") for field in fields) + " |"
    yield "|---" * (len(fields) + 1) + "|"
    for one in samples:
        cells = [getattr(one, field) for field in fields]
        yield (
            f"| {one.hours:.1f} | "
            + " | ".join(f"{x:.1f}" if isinstance(x, float) else f"{x:,}" for x in cells)
            + " |"
        )
    yield "| an hour | " + " | ".join(f"{slope(samples, field):+.3g}" for field in fields) + " |"
    first, last = settled(samples)[0], samples[-1]
    yield from ("", f"grown between {first.hours:.1f} and {last.hours:.1f} h, tracked objects by type:")
    before, after = unpacked(first.types), unpacked(last.types)
    yield from (f"{number:+6} to {after[name]:6}  {name}" for name, number in (after - before).most_common(15))
    yield from ("", "entries of caches, first and last:")
    before, after = unpacked(first.caches), unpacked(last.caches)
    yield from (f"{before[name]:6} {after[name]:6}  {name}" for name in sorted(after - before))
    yield from ("", *result.lines) if result.lines else ()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--limit-s", type=float, default=3600.0)
    parser.add_argument("--tracemalloc", action="store_true", help="what has grown most, by line; about half as fast")
    args = parser.parse_args()
    if args.tracemalloc:
        tracemalloc.start()
    print("\n".join(table(asyncio.run(soak(args.hours, args.limit_s)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
