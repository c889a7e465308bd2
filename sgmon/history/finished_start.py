"""A finished start: what the history keeps, and what two starts are compared by."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from sgmon.analyse.phase_times import phase_seconds
from sgmon.model.plan import MemoryTaken
from sgmon.servers import registry

#: before the names of ``MemoryTaken`` among the server's own numbers
MEMORY = "memory."


def flags_of(args: Iterable[tuple[str, str]]) -> str:
    """``StartKey.flags`` of the arguments of a start, as ``ServerArgs.raw`` has them."""
    names = registry.duration_flags()
    return " ".join(sorted(f"{name}={value}" for name, value in args if name in names))


class StartKey(Struct, frozen=True):
    """What must be equal for two starts to be comparable. parallel: "tp8 dp1 pp1 n1"; caches: "warm", "cold", "",
    and behind it "kernels built" where compilers ran or the log tells of it.

    flags: the arguments that change how long a start takes, "attention_backend=triton enable_torch_compile=True".
    """

    model: str
    version: str = ""
    parallel: str = ""
    gpu: str = ""
    host: str = ""
    mount: str = ""
    caches: str = ""
    flags: str = ""


class PassedMilestone(Struct, frozen=True):
    """One milestone of a start: seconds since the server began, and its line in the log."""

    name: str
    at_s: float
    line: int
    rank: str = ""
    phase: str = ""


class FinishedStart(Struct, frozen=True):
    """One finished start. own: the server's own numbers, (name, seconds), and what a rank took of its GPU by the log,
    ("memory.weights_bytes", bytes). gaps: (seconds, after line).
    foretold: rules that said until the end that it would fail, although it got ready: defects of sgmon."""

    key: StartKey
    started: float
    outcome: str
    duration_s: float | None
    lines: int
    pid: int = 0
    quiet_s: float | None = None
    milestones: tuple[PassedMilestone, ...] = ()
    gaps: tuple[tuple[float, int], ...] = ()
    args: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    own: tuple[tuple[str, float], ...] = ()
    headline: str = ""
    log: str = ""
    foretold: tuple[str, ...] = ()
    id: int | None = None

    @property
    def memory(self) -> MemoryTaken | None:
        """What a rank took of its GPU; None: the log did not say."""
        found = {name.removeprefix(MEMORY): round(value) for name, value in self.own if name.startswith(MEMORY)}
        known = {name: value for name, value in found.items() if name in MemoryTaken.__struct_fields__}
        return MemoryTaken(**known) if known else None

    @property
    def phases(self) -> tuple[tuple[str, float], ...]:
        """(phase, seconds) in the order of the start."""
        return phase_seconds((passed.phase, passed.at_s) for passed in self.milestones)
