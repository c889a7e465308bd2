"""The live source: every probe on its own; one that hangs or fails harms no other."""

import threading
from collections.abc import Iterable

from sgmon.collect.probes.base import Probe, ProbeError, Watched
from sgmon.collect.source import LiveSource
from sgmon.model import Event, PortReading, ProbeReading, ProcsReading, Reading
from sgmon.settings import Settings


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
