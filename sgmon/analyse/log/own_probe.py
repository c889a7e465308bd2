"""What our own look at the server leaves in its log: no sign of activity."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.analyse.log.prefix import epoch
from sgmon.servers.family import LogRules


def is_activity(rules: LogRules, text: str) -> bool:
    """Whether anything but the echo of our own health probe is in ``text``."""
    probe = rules.probe
    if probe is None:
        return bool(text.strip())
    return any(
        frame.strip() and not probe.search(frame) for line in _from_the_end(text) for frame in line.split("\r")
    )


def echo_s(rules: LogRules, text: str, near: float | None) -> float:
    """Seconds by which echoes of health probes at the end of ``text`` are younger than the line before them; 0
    without echoes, or without dates."""
    probe = rules.probe
    if probe is None:
        return 0.0
    last: float | None = None
    for line in _from_the_end(text):
        record = rules.record.match(line)
        dated = epoch(record["time"], near) if record else None
        if line.strip() and not probe.search(line):
            return max(0.0, last - dated) if last is not None and dated is not None else 0.0
        last = dated if last is None else last
    return 0.0


def _from_the_end(text: str) -> Iterator[str]:
    """The lines, the last one first, cut as they are asked for: mostly the last one tells."""
    end = len(text)
    while (begin := text.rfind("\n", 0, end)) >= 0:
        yield text[begin + 1 : end]
        end = begin
    yield text[:end]
