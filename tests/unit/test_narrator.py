"""What ``sgmon wait`` says on the way."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.commands.after import step_summary
from sgmon.commands.narrator import HEARTBEAT_S, Narrator, finished_phases
from tests.diagnosis.replay import replay
from tests.recorded import moments
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


def test_the_time_of_a_phase_stands_in_its_own_group() -> None:
    narrator = Narrator({"GITHUB_ACTIONS": "true"})
    group, inside, groups = "", {}, []
    for snapshot in moments("gpu-tp2"):
        for line in narrator.lines(snapshot):
            if line.startswith("::group::sgmon: "):
                group = line.removeprefix("::group::sgmon: ")
                groups.append(group)
            elif " took " in line:
                inside[line.partition("] ")[2].partition(" took ")[0]] = group
    assert "weight load" in groups and "graph capture" in groups
    assert all(inside[name] == name for name in groups if name in inside), inside


def test_the_summary_of_a_step_calls_a_phase_as_the_lines_do() -> None:
    rows = list(step_summary(replay("gpu-tp2")[1], 0))
    assert any(row.startswith("| weight load | ") for row in rows)
    assert not any("| weights |" in row or "| kv_cache |" in row for row in rows)


def test_nothing_in_a_headline_ends_an_annotation() -> None:
    stuck = fakes.stuck()
    verdict = replace(stuck.verdict, headline="100 %\n::error::no")
    lines = list(Narrator({"GITHUB_ACTIONS": "true"}).lines(replace(stuck, verdict=verdict)))
    mark = next(line for line in lines if line.startswith("::error title="))
    assert "\n" not in mark and "100 %25" in mark
