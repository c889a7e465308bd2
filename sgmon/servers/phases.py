"""The phases of a start, as a family's table: order, words, columns, what follows, how long each may be quiet."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from sgmon.text import without_prefix


class Phase(Struct, frozen=True):
    """One phase of a start, in its usual order.

    words: "weight load"; during: "in the weight load", "while importing". column, short: heads of the rank table (8
    and 4 cells). following: the phase after its end; "": its end says nothing, what follows has to begin by itself.
    silence_s: seconds without any sign of activity in healthy starts. log_silence_s: the same for the log alone.
    cpu_alone_s: how long CPU time alone may pass for work. optional: has a column only when the log speaks of it.
    launcher: belongs to the launcher, not to a rank. draft_of: the phase of the main model that a draft model repeats
    here; "" for a phase of its own.
    """

    name: str
    words: str
    during: str
    column: str = ""
    short: str = ""
    following: str = ""
    silence_s: float = 8.0
    log_silence_s: float = 60.0
    cpu_alone_s: float = 120.0
    optional: bool = False
    launcher: bool = False
    draft_of: str = ""


#: the end of every start, whatever the family
READY = Phase(
    "ready",
    "serving",
    "while serving",
    "ready",
    "redy",
    "serving",
    silence_s=10.0,
    log_silence_s=30.0,
    launcher=True,
)
SERVING = Phase("serving", "serving", "while serving", launcher=True)


def draft(phase: Phase, following: str, column: str, short: str) -> Phase:
    """The same phase of a draft model: same limits, its own words and column."""
    words = f"draft model's {phase.words}"
    return replace(
        phase,
        name=f"draft_{phase.name}",
        words=words,
        during=f"in the {words}",
        column=column,
        short=short,
        following=following,
        optional=True,
        draft_of=phase.name,
    )


class PhaseTable(Struct, frozen=True, eq=False):
    """All phases of a family, in their usual order. leader_only: milestones that one leading rank prints, or a bar
    that it shows: they are no difference between ranks. engine_ready: from this phase on the ranks take requests, and
    what is left is the HTTP server's start."""

    phases: tuple[Phase, ...] = ()
    leader_only: frozenset[str] = frozenset()
    engine_ready: str = ""
    _known: dict[str, Phase] = {}  # by name
    _places: dict[str, int] = {}

    def __post_init__(self) -> None:
        main = [phase.name for phase in self.phases if not phase.draft_of]
        places = {phase.name: main.index(phase.draft_of or phase.name) for phase in self.phases}
        force_setattr(self, "_known", {phase.name: phase for phase in self.phases})
        force_setattr(self, "_places", places)

    def of(self, name: str) -> Phase:
        """The phase of that name; "" counts as the first. One that is not in the table has its own name as words."""
        if not name and self.phases:
            return self.phases[0]
        return self._known.get(name) or Phase(name, name or "start", f"in the {name or 'start'}")

    def is_leader_only(self, milestone: str) -> bool:
        """Whether only a leading rank prints it, of the main model or of a draft model."""
        return without_prefix(milestone, "draft_") in self.leader_only

    def words(self, name: str) -> str:
        """ "weight load"; "start" while the phase is not known."""
        return self.of(name).words if name else "start"

    def during(self, name: str) -> str:
        """ "in the weight load"; "in the start" while the phase is not known."""
        return self.of(name).during if name else "in the start"

    def order(self, name: str) -> int:
        """Its place in the usual order, -1 for none. A draft model's phase has the place of the main model's."""
        return self._places.get(name, -1)

    def repeated(self, name: str) -> bool:
        """Whether a draft model goes through it as well."""
        return any(phase.draft_of == name for phase in self.phases)

    def after(self, name: str) -> str:
        """The phase that follows its end."""
        return self.of(name).following or name
