"""How long each phase may be quiet before it means anything.

Two kinds of quiet: no sign of life at all (counters, compilers and log together), and a silent log.
The first is short in every healthy start that was measured; the second is long. When counters cannot
be read the second is all there is, and it never suffices for ``stalled``.
"""

from __future__ import annotations

from dataclasses import dataclass

SUSPECT_S = 15.0
STALLED_S = 30.0
#: a silence that ended by itself raises the limits, up to here: a fault that ended must not blind
RECOVERED_CAP_S = 45.0

#: seconds without any sign of life seen in healthy starts (0.5.17 on H200, 0.5.23 on CPU), rounded up
USUAL_QUIET_S = {
    "launch": 5.0,
    "spawn": 5.0,
    "dist_init": 8.0,
    "weights": 9.0,
    "kv_cache": 6.0,
    "graphs": 8.0,
    "scheduler_ready": 6.0,
    "disagg": 10.0,
    "http": 6.0,
    "warmup": 8.0,
    "ready": 10.0,
}

#: seconds of log silence seen in healthy starts: imports 24-33 s, 8 min after the last shard
#: (expert repacking), 84 s in the first captured shape of every cold start
LOG_QUIET_S = {
    "launch": 25.0,
    "spawn": 33.0,
    "dist_init": 15.0,
    "weights": 482.0,
    "kv_cache": 60.0,
    "graphs": 85.0,
    "scheduler_ready": 20.0,
    "disagg": 60.0,
    "http": 20.0,
    "warmup": 85.0,
    "ready": 30.0,
}

#: seconds that CPU alone may pass for work, nothing else moving, before stacks are taken to see
CPU_ALONE_S = {
    "launch": 120.0,
    "spawn": 120.0,
    "dist_init": 45.0,
    "weights": 240.0,
    "kv_cache": 90.0,
    "graphs": 170.0,
    "scheduler_ready": 60.0,
    "http": 60.0,
    "warmup": 170.0,
}

#: the same where some ranks are busy and the others asleep: a slow rank with its waiters, or a missing one
MIXED_S = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds without a sign of life after which a start is suspect, and stalled."""

    suspect_s: float
    stalled_s: float


def base(phase: str) -> str:
    """The phase without "draft_": a draft model goes the same way."""
    return phase.removeprefix("draft_") or "launch"


def limits(phase: str, *, blind: bool, recovered_silence_s: float = 0.0, certain: bool = False) -> Limits:
    """Limits of a phase.

    blind: no counters could be read, so the log's own silence counts. recovered_silence_s: the longest silence
    of this start that ended by itself. certain: there is positive evidence of a hang (a rank that the
    others wait for does nothing), so the usual quiet does not excuse.
    """
    if blind:
        usual = LOG_QUIET_S.get(base(phase), 60.0)
        return Limits(max(SUSPECT_S, 2 * usual), max(STALLED_S, 2 * usual) + SUSPECT_S)
    if certain:
        return Limits(SUSPECT_S, STALLED_S)
    usual = USUAL_QUIET_S.get(base(phase), 8.0)
    suspect = max(SUSPECT_S, 2 * usual, 1.5 * min(recovered_silence_s, RECOVERED_CAP_S))
    return Limits(suspect, max(STALLED_S, suspect + SUSPECT_S))


def disk_quantum_s(read_ahead_bytes: int | None) -> float:
    """How long a slow disk may look dead: T_d = max(60 s, three read-aheads at 0.4 MB/s)."""
    return max(60.0, 3 * (read_ahead_bytes or 0) / 0.4e6)


def cpu_alone_s(phase: str, *, mixed: bool) -> float:
    """mixed: some ranks are busy and others asleep, and no GPU tells who spins. A weight load is let alone:
    there one rank may repack its experts for minutes while the others wait."""
    limit = CPU_ALONE_S.get(base(phase), 120.0)
    return min(limit, MIXED_S) if mixed and base(phase) != "weights" else limit
