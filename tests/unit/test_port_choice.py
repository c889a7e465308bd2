"""A port that no server has is said with the ports that were seen."""

from __future__ import annotations

from sgmon.analyse.store import Store
from sgmon.model import Candidate, Event, ServerReading


def test_no_server_has_the_port() -> None:
    seen = ServerReading(None, (Candidate(7, 1, "a", port=30000), Candidate(9, 1, "b")), asked_port=59999)
    store = Store(0.0)
    store.step(Event(0.1, "server", seen))
    verdict = store.step(Event(0.2, "tick")).verdict
    assert (verdict.state, verdict.rule) == ("waiting", "no-such-port")
    assert (
        "59999" in verdict.headline and "30000 (pid 7)" in verdict.headline and "unknown (pid 9)" in verdict.headline
    )
