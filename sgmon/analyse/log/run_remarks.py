"""What lines of one start say of an error near them: what helps, and in which phase it was."""

from __future__ import annotations

from msgspec import Struct, field

from sgmon.analyse.log.advice import remedy_in

#: How much advice is kept.
LIMIT = 100
#: clues in lines that are kept: the first ones
NOTED = 4_000


class RunRemarks(Struct):
    """Accumulates: (line, advice), (line, phase)."""

    remedies: list[tuple[int, str]] = field(default_factory=list)
    clues: list[tuple[int, str]] = field(default_factory=list)

    def copy(self) -> RunRemarks:
        return RunRemarks(list(self.remedies), list(self.clues))

    def take_remedy(self, body: str, number: int) -> None:
        """Keep the advice of a line, if it gives any."""
        advice = remedy_in(body) if len(self.remedies) < LIMIT else ""
        if advice:
            self.remedies.append((number, advice))

    def take_clue(self, phase: str, number: int) -> None:
        """Keep the phase that a line tells, if it tells one."""
        if phase and len(self.clues) < NOTED:
            self.clues.append((number, phase))
