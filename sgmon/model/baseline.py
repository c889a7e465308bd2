"""What is usual for a start like this one, from finished starts on this machine."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.plan import MemoryTaken


class Usual(Struct, frozen=True):
    """One milestone of ``count`` starts: seconds since the server began (median, p90) and its line in the log."""

    name: str
    median_s: float
    p90_s: float
    line: int
    count: int


class UsualPhase(Struct, frozen=True):
    """How long one phase lasts, first milestone to the next phase's first."""

    phase: str
    median_s: float
    p90_s: float


class Eta(Struct, frozen=True):
    """How long a start takes against what is usual. remains_s: until ready; None: it is ready, or later than usual.

    took_s: of a start that is ready; None: not ready, or not timed. usual_s: median of ``count`` finished starts;
    None while there is none.
    """

    remains_s: float | None = None
    took_s: float | None = None
    usual_s: float | None = None
    count: int = 0


class Baseline(Struct, frozen=True):
    """What is usual. ``like`` says in words how alike the starts are that it comes from; count 0: none was found.

    longest_quiet_s: the longest time without any activity of a rank that nine of ten starts stay under.
    narrow: its starts are alike in everything, caches too. memory: what a rank took, the median of memory_count
    starts.
    """

    like: str = ""
    count: int = 0
    narrow: bool = False
    ready_median_s: float | None = None
    ready_p90_s: float | None = None
    longest_quiet_s: float | None = None
    lines: int | None = None
    milestones: tuple[Usual, ...] = ()
    phases: tuple[UsualPhase, ...] = ()
    memory: MemoryTaken | None = None
    memory_count: int = 0
