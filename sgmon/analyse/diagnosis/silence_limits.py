"""How long each phase may be quiet before it means anything.

Two kinds of quiet: no sign of activity at all (counters, compilers and log together), and a silent log.
The first is short in every healthy start that was measured; the second is long. When counters cannot
be read the second is all there is, and it never suffices for ``stalled``.
"""

from __future__ import annotations

from msgspec import Struct

from sgmon.servers.phases import Phase

SUSPECT_S = 15.0
STALLED_S = 30.0
#: a silence that ended by itself raises the limits, up to here: a fault that ended must not blind
RECOVERED_CAP_S = 45.0

#: seconds that CPU time alone may pass for work, where some ranks are busy and others asleep: a slow rank with its
#: waiters, or a missing one
MIXED_S = 60.0
#: a hang that spins on a crowded machine must be found, too: at the latest after five times the limit
LEAST_SHARE = 0.2


class Limits(Struct, frozen=True):
    """Seconds without a sign of activity after which a start is suspect, and stalled."""

    suspect_s: float
    stalled_s: float


def limits(phase: Phase, *, blind: bool, recovered_silence_s: float = 0.0, certain: bool = False) -> Limits:
    """Limits of a phase.

    blind: no counters could be read, so the log's own silence counts. recovered_silence_s: the longest silence
    of this start that ended by itself. certain: there is positive evidence of a hang (a rank that the
    others wait for does nothing), so the usual quiet does not excuse.
    """
    if blind:
        usual = phase.log_silence_s
        return Limits(max(SUSPECT_S, 2 * usual), max(STALLED_S, 2 * usual) + SUSPECT_S)
    if certain:
        return Limits(SUSPECT_S, STALLED_S)
    usual = phase.silence_s
    suspect = max(SUSPECT_S, 2 * usual, 1.5 * min(recovered_silence_s, RECOVERED_CAP_S))
    return Limits(suspect, max(STALLED_S, suspect + SUSPECT_S))


def disk_quantum_s(read_ahead_bytes: int | None) -> float:
    """How long a slow disk may look dead: T_d = max(60 s, three read-aheads at 0.4 MB/s)."""
    return max(60.0, 3 * (read_ahead_bytes or 0) / 0.4e6)


def cpu_alone_s(phase: Phase, *, mixed: bool, share: float = 1.0) -> float:
    """mixed: some ranks are busy and others asleep, and no GPU tells who spins. A weight load is let alone:
    there one rank may repack its experts for minutes while the others wait. share: of the CPU time that they want,
    what the busy ranks got: on a starved CPU the same work takes longer, up to LEAST_SHARE."""
    let_alone = "weights" in (phase.name, phase.draft_of)
    limit_s = min(phase.cpu_alone_s, MIXED_S) if mixed and not let_alone else phase.cpu_alone_s
    return limit_s / min(1.0, max(LEAST_SHARE, share))
