"""A log whose lines show the time of another zone than this machine's."""

from datetime import datetime, timedelta

import pytest

from sgmon.analyse.store import Store
from sgmon.model import Event, LogReading, Server, ServerReading, Snapshot

EPOCH = 1_796_000_000.0
LINES = (
    (-7000.0, "server_args=ServerArgs(model_path='/m', tp_size=1)"),
    (-6990.0, "Init torch distributed begin."),
    (-6980.0, "Load weight begin. avail mem=139.00 GB"),
    (2.0, "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=78.00 GB, mem usage=61.00 GB."),
)


def _folded(zone_h: float, late_s: float = 0.3) -> Snapshot:
    """A server that began two hours before the watch; three lines are there already, one is written meanwhile."""
    store = Store(EPOCH)
    store.step(Event(0.1, "server", ServerReading(Server(100, 1000, started_epoch=EPOCH - 7100))))
    texts = [
        f"[{datetime.fromtimestamp(EPOCH + t) + timedelta(hours=zone_h):%Y-%m-%d %H:%M:%S}] {text}\n"
        for t, text in LINES
    ]
    store.step(Event(0.2, "log", LogReading("/l", text="".join(texts[:3]), age_s=6980.2)))
    return store.step(Event(2.0 + late_s, "log", LogReading("/l", text=texts[3])))


def _passed(snapshot: Snapshot) -> dict[str, float | None]:
    return {m.name: snapshot.passed_t(m) for m in snapshot.log.milestones}


@pytest.mark.parametrize("zone_h", [0.0, 2.0, -7.0, 5.75])
def test_times_are_right_whatever_zone_the_lines_show(zone_h: float) -> None:
    snapshot = _folded(zone_h)
    assert snapshot.log_zone_s == zone_h * 3600
    passed = _passed(snapshot)
    assert passed["dist_init_begin"] == pytest.approx(-6990.0, abs=1.0)
    assert passed["load_begin"] == pytest.approx(-6980.0, abs=1.0)
    assert passed["load_end"] == pytest.approx(2.3, abs=1.0)


def test_a_line_read_late_is_no_zone() -> None:
    assert _folded(0.0, late_s=400.0).log_zone_s == 0.0


def test_a_clock_that_no_zone_explains_is_left_alone() -> None:
    assert _folded(0.1).log_zone_s == 0.0
