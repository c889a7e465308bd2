"""The engine over a recorded watch: which stacks it asks for by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from sgmon.model import Event, LogReading, Snapshot, StacksReading
from sgmon.watch.engine import Engine
from tests.recorded import recording


class Live:
    """Events of a recording as if they came from live probes; remembers what it was asked for."""

    replay = ""

    def __init__(self, name: str) -> None:
        self.epoch, self._events = recording(name)
        self.t = 0.0
        self.asked: list[tuple[float, int, str]] = []
        self.ras = 0

    def __iter__(self) -> Iterator[Event]:
        for event in self._events:
            if not isinstance(event.reading, StacksReading):
                self.t = event.t
                yield event

    def stop(self) -> None: ...

    def request_stacks(self, pids: Sequence[int] | None, samples: int, native: bool, why: str) -> int | None:
        assert not native, "a native dump pauses its target"
        self.asked.append((self.t, samples, why))
        return len(self.asked)

    def request_ras(self) -> None:
        self.ras += 1

    def choose(self, pid: int) -> None: ...


def test_one_suspicion_one_request() -> None:
    source = Live("demo-stuck-rank")
    Engine(source).run_here()
    assert [(samples, why) for _, samples, why in source.asked] == [(3, "auto: suspect")]
    assert source.ras == 1


@pytest.mark.parametrize("name", ["cpu-tp2-tiny", "gpu-real-cold"])
def test_a_healthy_start_is_left_alone(name: str) -> None:
    source = Live(name)
    Engine(source).run_here()
    assert source.asked == []


def test_not_when_switched_off() -> None:
    source = Live("demo-stuck-rank")
    Engine(source, auto_evidence=False).run_here()
    assert source.asked == []


def test_the_first_ranks_are_published_at_once() -> None:
    source = Live("cpu-tp2-tiny")
    engine = Engine(source, publish_s=1e9)  # otherwise never
    published: list[Snapshot] = []
    engine.subscribe(published.append)
    for event in source:
        engine._take(event)
        if engine.snapshot.ranks:
            break
    assert published[-1].ranks == engine.snapshot.ranks != ()
    assert all(snapshot.ranks or snapshot.server is None for snapshot in published)  # not the panels without ranks


def test_what_a_log_tells_first_is_published_at_once() -> None:
    source = Live("cpu-tp2-tiny")
    engine = Engine(source, publish_s=1e9)
    published: list[Snapshot] = []
    engine.subscribe(published.append)
    for event in source:
        engine._take(event)
        if engine.snapshot.log.lines:
            break
    assert published[-1].log == engine.snapshot.log
    assert published[-1].log.lines > 0


class Steady(Live):
    """A ready server whose readings come one by one; shown: what each of them let the screen see."""

    def __init__(self) -> None:
        super().__init__("cpu-tp2-tiny")
        self.shown: dict[str, list[float]] = {}
        self.engine = Engine(self, auto_evidence=False)
        self.engine.subscribe(lambda snapshot: self.shown.setdefault(self._kind, []).append(snapshot.t))
        self._kind = ""

    def __iter__(self) -> Iterator[Event]:
        last: dict[str, Event] = {}
        for event in super().__iter__():
            last[event.kind] = event
            yield event
            if self.engine.snapshot.verdict.state == "ready" and event.kind == "port":
                break
        end_t = self.t
        for second in range(11):
            if second == 1:
                self.shown.clear()  # what was news before is shown
            for at, self._kind in enumerate(("procs", "gpu", "tick"), 1):
                self.t = end_t + second + at / 10
                reading = last[self._kind].reading if self._kind in last else None
                yield Event(self.t, self._kind, reading)
            if second == 5:
                self._kind = "log"
                self.t += 0.3
                yield Event(self.t, "log", LogReading(path="x", text="a line\n"))
        self._kind = "end"


def test_the_readings_of_a_ready_server_are_shown_together_at_the_tick_and_a_log_line_at_once() -> None:
    source = Steady()
    source.engine.run_here()
    shown = {kind: len(times) for kind, times in source.shown.items()}
    # after the line the verdict's evidence is another one: seen with the next reading of the processes
    assert shown == {"tick": 9, "procs": 1, "log": 1, "end": 1}
