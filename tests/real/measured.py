"""Seconds from a fault to what sgmon says of it, gathered over all real tests and printed at their end."""

from __future__ import annotations

from dataclasses import dataclass

from tests.real.watching import ANSWERS, Said, Watcher

#: a test sees a line in the log up to this much later than sgmon does
SLACK_S = 1.0


@dataclass(frozen=True)
class Row:
    """first_s: to the first word that is no "progressing"; verdict_s: to the state that the test asks for."""

    situation: str
    first: str
    first_s: float | None
    state: str
    verdict_s: float | None
    headline: str


ROWS: list[Row] = []


def fault(situation: str, watcher: Watcher, fault_at: float, verdict: Said) -> None:
    """Note how long it took from the fault to the first suspicion and to the verdict."""
    first = watcher.first(*ANSWERS, after=fault_at - SLACK_S) or verdict
    ROWS.append(
        Row(
            situation,
            first.state,
            max(0.0, first.at - fault_at),
            verdict.state,
            max(0.0, verdict.at - fault_at),
            verdict.verdict.headline,
        )
    )


def healthy(situation: str, began_at: float, verdict: Said, states: list[str]) -> None:
    """Note when a start without a fault was called ready, and by which states it went."""
    ROWS.append(Row(situation, " ".join(states[:-1]), None, verdict.state, verdict.at - began_at, "since the launch"))


def note(situation: str, states: str, ready_s: float | None, false: int) -> None:
    """Note a start that was recorded: all its states, and how many false words."""
    ROWS.append(Row(situation, states, None, "ready", ready_s, f"{false} false words"))


def table() -> list[str]:
    """The lines of the table."""
    lines = [f"{'situation':34} {'first word':>26} {'verdict':>26}  headline"]
    for row in ROWS:
        first = row.first if row.first_s is None else f"{row.first} {row.first_s:.1f} s"
        verdict = row.state if row.verdict_s is None else f"{row.state} {row.verdict_s:.1f} s"
        lines.append(f"{row.situation:34} {first:>26} {verdict:>26}  {row.headline}")
    return lines
