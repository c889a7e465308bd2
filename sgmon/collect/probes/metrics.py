"""The parts of the start that a ready server tells at /metrics: one GET, once a start."""

from __future__ import annotations

import http.client
import re

DEADLINE_S = 0.7  # a watch that ends waits a second for all of it
_LIMIT = 4 << 20


def startup_times(host: str, port: int, metric: str) -> tuple[tuple[str, float], ...]:
    """(phase, seconds) of the metric of that name; () when the server does not tell. Never raises."""
    where = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    connection = http.client.HTTPConnection(where, port, timeout=DEADLINE_S)
    try:
        connection.request("GET", "/metrics", headers={"connection": "close"})
        answer = connection.getresponse()
        return parse(answer.read(_LIMIT).decode("utf-8", "replace"), metric) if answer.status == 200 else ()
    except (OSError, http.client.HTTPException):
        return ()
    finally:
        connection.close()


def parse(text: str, metric: str) -> tuple[tuple[str, float], ...]:
    """Prometheus text; the largest value of each phase (several ranks may tell theirs)."""
    line = re.compile(rf'^{re.escape(metric)}\{{[^}}]*phase="(\w+)"[^}}]*\}} ([0-9.eE+-]+)', re.M)
    found: dict[str, float] = {}
    for name, value in line.findall(text):
        found[name] = max(found.get(name, 0.0), float(value))
    return tuple(found.items())
