"""The progress lines of ``sgmon wait``: each phase with its time, a heartbeat; marks for GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sgmon import units
from sgmon.analyse.phase_times import phase_seconds
from sgmon.export.text import progress_line
from sgmon.model import Snapshot
from sgmon.servers import registry
from sgmon.text import safe

HEARTBEAT_S = 10.0
#: how long after a phase the line with its time is awaited, so that it stands in the phase's own group
LATE_S = 3.0
#: states whose coming is said at once; everything else waits for the next heartbeat
_TURNS = frozenset({"will-fail", "suspect", "stalled", "stopped", "crashed", "unhealthy", "ended", "ready"})
_LEVELS = {
    **dict.fromkeys(("crashed", "stalled", "stopped", "unhealthy"), "error"),
    **dict.fromkeys(("will-fail", "suspect"), "warning"),
    "ended": "notice",
    "ready": "notice",
}


class Narrator:
    """``lines`` of each snapshot. environ: decides whether GitHub Actions reads them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.marks = environ.get("GITHUB_ACTIONS") == "true"
        self._said_t = -HEARTBEAT_S
        self._state = ""
        self._told: set[str] = set()
        self._group = ""
        self._left_t: float | None = None  # since then the phase is another one than the open group's

    def lines(self, snapshot: Snapshot) -> Iterator[str]:
        """What is new; nothing for most snapshots."""
        return map(self.shown, self._lines(snapshot))

    def shown(self, line: str) -> str:
        """The line as it may be printed: GitHub takes "##[" anywhere in a line for a command of the job."""
        return line.replace("##[", "## [") if self.marks else line

    def _lines(self, snapshot: Snapshot) -> Iterator[str]:
        for phase, took_s in finished_phases(snapshot):
            if phase not in self._told:
                self._told.add(phase)
                yield _phase_line(snapshot, phase, took_s)
        state = snapshot.verdict.state
        turned = state != self._state and state in _TURNS
        if self.marks and self._group_is_over(snapshot):
            yield from self._new_group(snapshot)
        if turned or snapshot.t - self._said_t >= HEARTBEAT_S:
            if self.marks and turned:
                yield from self._close()
                yield _mark(snapshot)
            self._said_t, self._state = snapshot.t, state
            yield progress_line(snapshot)

    def end(self) -> Iterator[str]:
        """What closes an open group."""
        yield from self._close()

    def _group_is_over(self, snapshot: Snapshot) -> bool:
        phase = snapshot.verdict.phase
        if not phase or phase == self._group:
            self._left_t = None
            return False
        if self._left_t is None:
            self._left_t = snapshot.t
        is_told = not self._group or self._group in self._told
        return is_told or snapshot.t - self._left_t >= LATE_S

    def _new_group(self, snapshot: Snapshot) -> Iterator[str]:
        yield from self._close()
        self._group, self._left_t = snapshot.verdict.phase, None
        yield f"::group::sgmon: {registry.get(snapshot.family).phases.words(self._group)}"

    def _close(self) -> Iterator[str]:
        if self._group:
            self._group = ""
            yield "::endgroup::"


def finished_phases(snapshot: Snapshot) -> tuple[tuple[str, float], ...]:
    """(phase, seconds) of every phase that is over, by the log's milestones."""
    order = registry.get(snapshot.family).phases.order
    passed = ((one.phase, snapshot.passed_t(one)) for one in snapshot.log.milestones if order(one.phase) >= 0)
    return phase_seconds((phase, t) for phase, t in passed if t is not None)


def _phase_line(snapshot: Snapshot, phase: str, took_s: float) -> str:
    base = snapshot.baseline
    usual = next((one.median_s for one in base.phases if one.phase == phase), None) if base is not None else None
    usually = "" if usual is None else f" (usually {units.duration(usual)})"
    at = units.duration(snapshot.t - (snapshot.began_t or 0.0))
    return f"[{at}] {registry.get(snapshot.family).phases.words(phase)} took {units.duration(took_s)}{usually}"


def _mark(snapshot: Snapshot) -> str:
    """An annotation of the job: https://docs.github.com/actions/reference/workflow-commands-for-github-actions"""
    verdict = snapshot.verdict
    words = safe(verdict.headline, 400).replace("%", "%25").replace("\n", "%0A").replace("\r", "%0D")
    return f"::{_LEVELS[verdict.state]} title=sgmon%3A {verdict.state}::{words}"
