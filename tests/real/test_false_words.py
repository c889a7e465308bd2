"""Healthy starts side by side, which load the machine by themselves: each has an sgmon of its own, whose recording is
replayed event by event, and every verdict is looked at. One false word is a failure.

SGMON_REAL_STARTS: how many starts in all (2). SGMON_REAL_AT_ONCE: how many beside each other (4); each needs 3 GB.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sgmon.analyse.store import Store
from sgmon.recording.codec import read
from tests.real import measured
from tests.real.server import HOME, RealServer, drop_page_cache, free_port, real_server, until

STARTS = int(os.environ.get("SGMON_REAL_STARTS", "2"))
AT_ONCE = int(os.environ.get("SGMON_REAL_AT_ONCE", "4"))
#: one after the other: what differs in a start that sgmon must not take for a fault. Not with several tokenizer workers:
#: uvicorn kills those that do not answer in 5 s, and at load 40 no such server ever gets ready
SITUATIONS = (
    ("tiny", "--tp", "2"),
    ("mid", "--tp", "2"),
    ("tiny",),
    ("tiny", "--dp", "2"),
)
FALSE = frozenset({"suspect", "stalled", "stopped", "crashed", "unhealthy", "will-fail", "unknown", "ended"})
#: after it was asked to end
FALSE_AT_THE_END = FALSE - {"ended"}
READY_S = 420.0
BESIDE_READY_S = 10.0


@dataclass
class Start:
    """One server and the recording of its own sgmon. Times are of the wall clock."""

    flags: tuple[str, ...]
    server: RealServer
    recorder: subprocess.Popen[bytes]
    recording: Path
    loads: list[float] = field(default_factory=list)
    asked_at: float = 0.0

    @property
    def answers(self) -> bool:
        """It says so, and the /health of its sgmon was answered: on a loaded machine that takes seconds."""
        _, _, after = self.server.text().partition("fired up and ready to roll")
        return '"GET /health HTTP/1.1" 200' in after


@pytest.mark.parametrize("first", range(0, STARTS, AT_ONCE))
def test_healthy_starts_side_by_side(first: int, tmp_path: Path) -> None:
    numbers = range(first, min(first + AT_ONCE, STARTS))
    found = _side_by_side(tmp_path, [SITUATIONS[number % len(SITUATIONS)] for number in numbers], first)
    assert not found, "\n".join(found)


def _side_by_side(tmp_path: Path, situations: list[tuple[str, ...]], first: int) -> list[str]:
    """The false words of these starts, with the second and the headline."""
    drop_page_cache(HOME / "models" / "mid")
    with ExitStack() as stack:
        starts: list[Start] = []
        for number, flags in enumerate(situations, first):
            port = free_port(*(start.server.port for start in starts))
            recording = tmp_path / f"start-{number}.jsonl.gz"
            recorder = subprocess.Popen(
                [sys.executable, "-m", "tui_app.cli", "record", str(recording), "--port", str(port), "--no-gpu"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={
                    **os.environ,
                    "XDG_STATE_HOME": str(tmp_path / f"state-{number}"),
                },  # it remembers no other start
            )
            stack.callback(_end, recorder)
            server = stack.enter_context(real_server(tmp_path, *flags, port=port))
            starts.append(Start(flags, server, recorder, recording))
        until(lambda: _all_answer(starts), READY_S, "all servers")
        time.sleep(BESIDE_READY_S)  # beside a ready server, too
        for start in starts:
            start.asked_at = time.time()
            os.kill(start.server.pid, signal.SIGTERM)
        until(lambda: all(start.server.ended for start in starts), 120, "the end of the servers")
        time.sleep(3.0)
        for start in starts:
            _end(start.recorder)
    return [word for start in starts for word in _false_words(start)]


def _all_answer(starts: list[Start]) -> bool:
    for start in starts:
        start.loads.append(os.getloadavg()[0])
    assert not any(start.server.ended for start in starts), [start.server.text()[-1000:] for start in starts]
    return all(start.answers for start in starts)


def _end(recorder: subprocess.Popen[bytes]) -> None:
    if recorder.poll() is None:
        recorder.send_signal(signal.SIGINT)
    recorder.wait(60)


def _false_words(start: Start) -> list[str]:
    header, events = read(start.recording)
    store = Store(header.epoch)
    false: list[str] = []
    states: list[str] = []
    ready_t: float | None = None
    for event in events:
        verdict = store.step(event).verdict
        at = header.epoch + event.t
        if not states or states[-1] != verdict.state:
            states.append(verdict.state)
        if verdict.state == "ready" and ready_t is None:
            ready_t = at - start.server.began_at
        wrong = FALSE if not start.asked_at or at < start.asked_at else FALSE_AT_THE_END
        word = f"{' '.join(start.flags)}: {verdict.state} ({verdict.rule}) {verdict.headline}"
        if verdict.state in wrong and not any(word in said for said in false):
            false.append(f"{at - start.server.began_at:7.1f} s {word}")
    load = f"load {min(start.loads):.0f}-{max(start.loads):.0f}"
    measured.note(f"healthy, {' '.join(start.flags)}, {load}", " ".join(states), ready_t, len(false))
    if ready_t is None or states[-1] != "ended":
        false.append(f"{' '.join(start.flags)}: {' '.join(states)}: never ready, or its end was not seen")
    return false
