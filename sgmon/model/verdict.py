"""What the diagnosis says, and what carries it."""

from __future__ import annotations

from msgspec import Struct

STATES = (
    "waiting",
    "progressing",
    "slow",
    "will-fail",
    "waiting-by-design",
    "suspect",
    "stalled",
    "stopped",
    "crashed",
    "ended",
    "ready",
    "unhealthy",
    "unknown",
    "unfinished",
)


class Missing(Struct, frozen=True):
    """A signal that could not be had: which, why, and what would give it."""

    signal: str
    why: str
    remedy: str = ""


class Evidence(Struct, frozen=True):
    """One fact that carries a verdict. ``signal`` names where it was read (log, proc, gpu, port ...)."""

    signal: str
    text: str
    rank: str = ""
    pid: int | None = None
    value: float | str | None = None


class NextStep(Struct, frozen=True):
    """What to do next: words, and a command to copy (may be empty).

    key: the key of the dashboard that does the same ("" where none does); line: the line of the log that it shows.
    """

    text: str
    command: str = ""
    key: str = ""
    line: int | None = None


class Verdict(Struct, frozen=True):
    """State, headline in words, and the evidence. ``confidence`` is 0..1, a judgement, not a frequency."""

    state: str
    headline: str
    phase: str = ""
    since_t: float = 0.0
    confidence: float = 0.0
    rule: str = ""
    odd_ranks: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[Missing, ...] = ()
    next: tuple[NextStep, ...] = ()
    pending: str = ""  # a state that was found but has not held long enough to be shown
    pending_t: float = 0.0
    nodes: tuple[str, ...] = ()  # where the culprit is; () on a single machine, or where it is on none


class KillClock(Struct, frozen=True):
    """A time-out that runs now: of the server itself, or (outside) of a program above it.

    left_s may be negative: it is due.
    """

    what: str
    left_s: float
    limit_s: float
    outside: bool = False


class VerdictChange(Struct, frozen=True):
    """One change of the verdict, kept so that the history can be shown."""

    t: float
    state: str
    headline: str
