"""What ``sgmon wait`` says on the way."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.commands.narrator import HEARTBEAT_S, Narrator, finished_phases
from tests.diagnosis.replay import replay
from tests.ui import fakes


def test_each_phase_is_said_once_with_its_time_then_only_a_heartbeat() -> None:
    snapshot = replay("gpu-tp2")[1]
    narrator = Narrator({})
    lines = list(narrator.lines(snapshot))
    assert sum(" took " in line for line in lines) == len(finished_phases(snapshot)) > 3
    assert any("weight load took" in line for line in lines)
    assert list(narrator.lines(replace(snapshot, t=snapshot.t + 1))) == []
    assert len(list(narrator.lines(replace(snapshot, t=snapshot.t + HEARTBEAT_S)))) == 1


def test_in_github_actions_phases_are_groups_and_a_stall_is_an_error() -> None:
    narrator = Narrator({"GITHUB_ACTIONS": "true"})
    lines = list(narrator.lines(fakes.loading()))
    assert any(line.startswith("::group::sgmon: ") for line in lines)
    later = list(narrator.lines(fakes.stuck()))
    assert later.index("::endgroup::") < next(i for i, line in enumerate(later) if line.startswith("::error title="))
    assert list(narrator.end()) == []


def test_nothing_in_a_headline_ends_an_annotation() -> None:
    stuck = fakes.stuck()
    verdict = replace(stuck.verdict, headline="100 %\n::error::no")
    lines = list(Narrator({"GITHUB_ACTIONS": "true"}).lines(replace(stuck, verdict=verdict)))
    mark = next(line for line in lines if line.startswith("::error title="))
    assert "\n" not in mark and "100 %25" in mark
