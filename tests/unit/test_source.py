"""The live source: every probe on its own; one that hangs or fails harms no other."""

import threading
from collections.abc import Iterable

import pytest

from sgmon.collect import calm
from sgmon.collect.probes.base import Probe, ProbeError, Watched
from sgmon.collect.probes.server import ServerProbe
from sgmon.collect.source import LiveSource
from sgmon.model import (
    Event,
    LogReading,
    PortReading,
    ProbeReading,
    Process,
    ProcsReading,
    Reading,
    Role,
    Server,
    ServerReading,
)
from sgmon.settings import Settings
from sgmon.watch.engine import Engine


class Scripted:
    """A probe whose read is a function."""

    interval_s = 0.01
    deadline_s = 0.05

    def __init__(self, name: str, read) -> None:
        self.name = self.kind = name
        self._read = read

    def read(self) -> Reading | Iterable[Reading] | None:
        return self._read()

    def close(self) -> None:
        pass


def _source(*probes: Probe) -> LiveSource:
    def make(watched: Watched, source: LiveSource) -> list[Probe]:
        return list(probes)

    return LiveSource(Settings(), make)


def _until(source: LiveSource, done) -> list[Event]:
    seen = []
    for event in source:
        seen.append(event)
        if done(seen) or event.t > 20:
            source.stop()
    return seen


def test_a_hanging_probe_is_reported_and_the_others_go_on() -> None:
    never = threading.Event()
    hung = Scripted("gpu", lambda: never.wait(60) and None)
    fine = Scripted("port", lambda: PortReading("h", 1, "refused"))
    source = _source(hung, fine)

    def done(seen: list[Event]) -> bool:
        stuck = [e for e in seen if isinstance(e.reading, ProbeReading) and e.reading.in_flight_since_t is not None]
        return bool(stuck) and sum(e.kind == "port" for e in seen) > 5

    seen = _until(source, done)
    never.set()
    assert done(seen)
    assert {e.reading.name for e in seen if isinstance(e.reading, ProbeReading)} == {"gpu"}


def test_failures_become_words_and_recovery_clears_them() -> None:
    answers = iter([ProbeError("denied", "sudo sgmon"), ValueError("boom"), ProcsReading()])

    def read() -> Reading | None:
        answer = next(answers, None)
        if isinstance(answer, Exception):
            raise answer
        return answer

    seen = _until(_source(Scripted("procs", read)), lambda seen: any(e.kind == "procs" for e in seen))
    said = [e.reading for e in seen if isinstance(e.reading, ProbeReading)]
    assert [(s.error, s.remedy) for s in said[:2]] == [
        ("denied", "sudo sgmon"),
        ("ValueError: boom", "this is a defect of sgmon: please report it"),
    ]
    assert said[2].error == ""


def test_silence_still_moves_time() -> None:
    seen = _until(_source(), lambda seen: len(seen) >= 3)
    assert [e.kind for e in seen[:3]] == ["tick"] * 3
    assert seen[2].t > seen[0].t


def test_ticks_are_rarer_at_a_longer_interval() -> None:
    source = LiveSource(Settings(interval_s=2.0), lambda watched, source: [])
    first, second = _until(source, lambda seen: len(seen) >= 2)[:2]
    assert second.t - first.t >= 0.49


@pytest.mark.parametrize("one_look", [False, True])
def test_the_ranks_come_first_and_in_one_look_nothing_waits(one_look: bool) -> None:
    looked, order = threading.Event(), []

    def procs() -> Reading | None:
        looked.wait(0.3)  # a slow look: the others would be read before it
        order.append("procs")
        return ProcsReading()

    def other(kind: str) -> Reading | None:
        order.append(kind)
        looked.set()
        return LogReading("x") if kind == "log" else PortReading("h", 1, "refused")

    def make(watched: Watched, source: LiveSource) -> list[Probe]:
        server = Scripted("server", lambda: ServerReading(Server(100, 1000)))
        rest = (Scripted(kind, lambda kind=kind: other(kind)) for kind in ("log", "port"))
        return [server, Scripted("procs", procs), *rest]

    source = LiveSource(Settings(), make, one_look=one_look)
    _until(source, lambda seen: {"procs", "log", "port"} <= {e.kind for e in seen})
    assert {"procs", "log", "port"} <= set(order)
    assert (order[0] == "procs") is not one_look


def test_the_log_does_not_wait_for_processes_that_nobody_may_see() -> None:
    def procs() -> Reading | None:
        raise ProbeError("hidden", "sudo sgmon")

    server = Scripted("server", lambda: ServerReading(Server(100, 1000)))
    seen = _until(
        _source(server, Scripted("procs", procs), Scripted("log", lambda: LogReading("x"))),
        lambda seen: any(e.kind == "log" for e in seen),
    )
    failed = next(e for e in seen if isinstance(e.reading, ProbeReading))
    log = next(e for e in seen if e.kind == "log")
    assert failed.reading.name == "procs" and seen.index(failed) < seen.index(log)


def test_an_event_that_waited_in_the_queue_does_not_bring_the_old_server_back() -> None:
    source = _source()
    old, new = Server(100, 1000), Server(200, 2000)
    source._emit(Event(0.0, "server", ServerReading(old)))
    source.watched.server = new  # the probe has found the next one meanwhile
    _until(source, lambda seen: seen[-1].kind == "server")
    assert source.watched.server is new


def test_choosing_a_server_goes_through_the_probe() -> None:
    probes: list[ServerProbe] = []

    def make(watched: Watched, source: LiveSource) -> list[Probe]:
        probes.append(ServerProbe(watched))
        return list(probes)

    settings = Settings(proc_root="/nowhere")
    source = LiveSource(settings, make)
    source.choose(4711)
    assert source.watched.settings is settings and probes[0]._requested == 4711


def test_events_that_find_no_place_are_counted_but_log_text_waits(monkeypatch) -> None:
    monkeypatch.setattr("sgmon.collect.source.QUEUE_SIZE", 2)
    monkeypatch.setattr("sgmon.collect.source.FULL_S", 0.01)
    source = _source()
    for t in range(5):
        source._emit(Event(float(t), "port", PortReading("h", 1, "refused")))
    assert source.dropped == 3
    waiting = threading.Thread(target=source._emit, args=(Event(9.0, "log", LogReading("x")),), daemon=True)
    waiting.start()
    snapshots = []
    engine = Engine(source, auto_evidence=False)
    engine.subscribe(lambda snapshot: (snapshots.append(snapshot), snapshot.log.path and source.stop()))
    engine.run_here()
    waiting.join(5)
    assert not waiting.is_alive() and snapshots[-1].log.path == "x"
    status = next(probe for probe in snapshots[-1].probes if probe.name == "events")
    assert "3 readings lost" in status.error and source.dropped == 3


def test_in_a_calm_a_tick_comes_with_the_processes_and_after_a_log_line_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calm, "SETTLED_S", 0.0)
    line = iter([LogReading(path="x", text="a line\n")])
    port = Scripted("port", lambda: PortReading("h", 1, "http", status=200))
    procs = Scripted("procs", lambda: ProcsReading(processes=(Process(7, 1, 100, Role.WORKER, state="S"),)))
    log = Scripted("log", lambda: next(line, None) if source.watched.calm else None)
    source = _source(port, procs, log)

    def done(seen: list[Event]) -> bool:
        at = next((n for n, event in enumerate(seen) if event.kind == "log"), None)
        return at is not None and sum(event.kind == "tick" for event in seen[at:]) >= 3

    seen = _until(source, done)
    assert done(seen)
    after = seen[next(n for n, event in enumerate(seen) if event.kind == "log") :]
    ticks = [event.t for event in after if event.kind == "tick"]
    with_procs = {event.t for event in after if event.kind == "procs"}
    assert ticks[1] - ticks[0] >= 0.5  # without the calm four a second
    assert ticks[1] in with_procs
