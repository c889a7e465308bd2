"""When text of a log is read: at once after silence, gathered in a flow, at once when the flow ends."""

from __future__ import annotations

import time

from sgmon.collect.logs import file as logfile
from sgmon.collect.logs.pace import EARLY, GATHER_S, LEAST_S, POLL_S, SETTLED_S, Pace
from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.logtail import LogProbe
from sgmon.settings import Settings


def readings(pace: Pace, written: list[float], until: float) -> list[tuple[float, float]]:
    """(when it was read, how old its oldest text was) of a log that grows at these times, as the probe asks."""
    found, read, t = [], 0, 100.0
    while t < until:
        size = sum(at <= t for at in written)
        if size > read and not pace.waits(t, size):
            found.append((t, t - written[read]))
            read = size
        t += POLL_S
    assert read == len(written), "text was never read"
    return found


def test_text_after_silence_is_read_at_once():
    for written in ([101.0], [101.0, 103.0, 105.0], [101.0 + 0.5 * n for n in range(40)]):
        assert all(age <= SETTLED_S + 2 * POLL_S for _, age in readings(Pace(), written, 130.0))


def test_text_that_keeps_coming_is_read_once_a_second():
    found = readings(Pace(), [100.0 + 0.05 * n for n in range(400)], 121.0)
    assert len(found) <= 20 / GATHER_S + EARLY + 1
    assert max(age for _, age in found) <= GATHER_S + 2 * POLL_S


def test_the_end_of_a_flow_is_not_late():
    flow = [100.0 + 0.05 * n for n in range(200)]
    late = [readings(Pace(), [*flow, flow[-1] + more], 120.0)[-1] for more in (0.01, 0.03, 0.05)]
    assert all(t - flow[-1] <= LEAST_S + SETTLED_S + 2 * POLL_S for t, _ in late)


def test_pauses_in_a_flow_make_few_readings():
    """Text that comes each 0.15 s ends no flow each time."""
    found = readings(Pace(), [100.0 + 0.15 * n for n in range(100)], 120.0)
    assert len(found) <= 15 * (1 / LEAST_S + 1 / GATHER_S) + EARLY < 100


def test_a_gathered_piece_is_read_to_its_end(tmp_path):
    """However much came: what one round leaves does not wait for the next second."""
    path = tmp_path / "server.log"
    path.write_text("first\n")
    probe = LogProbe(Watched(Settings(log=str(path)), Clock()))
    probe.read()
    for _ in range(EARLY):
        with path.open("a") as log:
            log.write("more\n")
        assert probe.read() is not None
    with path.open("a") as log:
        log.write("x" * 79 + "\n")
    assert probe.read() is None  # the flow has begun
    with path.open("a") as log:
        log.write(("x" * 79 + "\n") * (3 * logfile.ROUND_BYTES // 80))
    deadline, parts = time.monotonic() + 20, []
    while not parts:
        assert time.monotonic() < deadline
        parts += [one for one in (probe.read(),) if one is not None]
    while probe.busy:
        parts.append(probe.read())
    assert len(parts) == 4
    assert parts[-1].size == parts[-1].offset + len(parts[-1].text) == path.stat().st_size
    probe.close()
