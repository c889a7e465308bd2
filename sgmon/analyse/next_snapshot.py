"""Parts of the next snapshot that the store of one node and that of several make alike."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis import usual
from sgmon.model import Event, ProbeReading, ProbeStatus, Snapshot, Verdict, VerdictChange

KEPT_VERDICTS = 64


def probe_status(old: tuple[ProbeStatus, ...], event: Event) -> tuple[ProbeStatus, ...]:
    """How the probes are doing after this event."""
    if event.kind == "tick" or event.reading is None:
        return old
    known = {status.name: status for status in old}
    if isinstance(event.reading, ProbeReading):
        said = event.reading
        before = known.get(said.name, ProbeStatus(said.name))
        known[said.name] = replace(
            before, in_flight_since_t=said.in_flight_since_t, error=said.error, remedy=said.remedy
        )
    else:
        known[event.kind] = ProbeStatus(event.kind, last_ok_t=event.t, took_s=event.took_s)
    return tuple(known.values())


def _with_eta(new: Snapshot, verdict: Verdict) -> Snapshot:
    found = usual.eta(replace(new, verdict=verdict))
    return new if found == new.eta else replace(new, eta=found)


def with_verdict(new: Snapshot, verdict: Verdict) -> Snapshot:
    """The snapshot with its next verdict, and the history of verdicts with it."""
    new = _with_eta(new, verdict)
    if verdict == new.verdict:
        return new
    verdicts = new.verdicts
    before = new.verdict
    if not verdicts or (before.state, before.phase, before.odd_ranks) != (
        verdict.state,
        verdict.phase,
        verdict.odd_ranks,
    ):
        change = VerdictChange(new.t, verdict.state, verdict.headline)
        verdicts = (*verdicts[-KEPT_VERDICTS + 1 :], change)
    return replace(new, verdict=verdict, verdicts=verdicts)


def with_note(old: Snapshot, saved: tuple[str, ...] | None, replay: str | None) -> Snapshot:
    """The snapshot with what the engine knows: files it has written, where a replay is. None: as before."""
    if saved is not None:
        old = replace(old, saved=saved)
    return old if replay is None else replace(old, replay=replay)
