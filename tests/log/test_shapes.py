"""Logs as other programs hand them over: one crash in many envelopes, and one small log of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from sgmon.model import LogState
from tests.log.loading import fold

SHAPES = Path(__file__).parent / "shapes"
WRAPPERS = sorted(path.stem for path in (SHAPES / "wrappers").glob("*.log"))
KINDS = [line.split("\t") for line in (SHAPES / "expected.tsv").read_text("utf-8").splitlines()[1:]]
#: The list has the line that opens the traceback; the exception's own says more.
TRACEBACKS = {"02-crash-of-the-rank-behind": "6"}
#: Nothing in the text says which rank a line is of.
NO_RANKS = {"dynamo"}


def read(path: Path) -> LogState:
    return fold(path.read_bytes().decode("utf-8", "replace"))


def told(state: LogState, ranks: bool = True) -> dict[str, object]:
    """What every reading of the same start must agree on."""
    error = state.error
    found: dict[str, object] = {
        "state": (state.outcome, state.lines),
        "error": (error.kind, error.line, error.text) if error else None,
        "milestones": [(m.name, m.event, m.line, m.phase) for m in state.milestones],
        "bars": [(bar.name, bar.done, bar.total, bar.line) for bar in state.bars],
        "args": state.args,
    }
    if ranks:
        found["phase"] = state.phase
        found["error rank"] = error.rank if error else None
        found["ranks"] = [(rank.rank, rank.milestone, rank.line) for rank in state.ranks]
        found["times"] = [(m.name, m.rank, m.t) for m in state.milestones if m.event != "progress"]
        found["first"] = state.first_t
    return found


@pytest.mark.parametrize("name", WRAPPERS)
def test_an_envelope_changes_nothing(name: str) -> None:
    plain, state = (read(SHAPES / "wrappers" / f"{one}.log") for one in ("plain", name))
    assert told(state, name not in NO_RANKS) == told(plain, name not in NO_RANKS)


@pytest.mark.parametrize(("name", "outcome", "phase", "cause", "more"), KINDS, ids=[kind[0] for kind in KINDS])
def test_kind(name: str, outcome: str, phase: str, cause: str, more: str, request: pytest.FixtureRequest) -> None:
    state = read(SHAPES / "minimal" / f"{name}.log")
    line, kind, rank = (*cause.split(" ", 2), "", "")[:3]
    error = state.error
    assert state.outcome == outcome
    assert state.phase == ("" if phase in ("unknown", "-") else phase)
    lines = {line, TRACEBACKS.get(name, line)}
    assert error.kind == kind and str(error.line) in lines if error else cause == "-"
    assert not rank or (error and error.rank.replace(" ", "").lower() == rank.replace(" ", "").lower())
