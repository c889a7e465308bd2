"""One clock a fact: what is said of one moment reads the same wherever it stands."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.export.text import as_text
from tests.diagnosis.replay import replay
from tests.ui.screen import running, text_of
from tui_app.exit_summary import exit_summary


@pytest.mark.parametrize("later_s", [7.4, 21.3])
async def test_a_silence_has_one_age_on_the_screen(later_s: float) -> None:
    snapshot = replay("demo-stuck-rank")[1]
    snapshot = replace(snapshot, t=snapshot.t + later_s)
    snapshot = replace(snapshot, verdict=diagnose(snapshot))
    assert snapshot.verdict.state == "stalled"
    async with running(snapshot, (120, 40)) as (app, _, _):
        told = re.findall(r"silent (?:for )?(\w+)", text_of(app))
        told += re.findall(r"(\w+) ago", next(row for row in text_of(app).splitlines() if "last byte" in row))
    assert len(told) >= 3
    assert len(set(told)) == 1, told
    assert f"(silent {told[0]})" in as_text(snapshot)[0]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("crashed", "crashed 25s ago:"),
        ("stalled", "stalled, silent 25s:"),
        ("ready", "ready for 25s:"),
        ("waiting-by-design", "waiting (expected) for 25s:"),
    ],
)
def test_the_line_that_stays_says_what_its_time_is(state: str, words: str) -> None:
    snapshot = replay("demo-stuck-rank")[1]
    verdict = replace(snapshot.verdict, state=state, since_t=snapshot.t - 29)
    assert exit_summary(replace(snapshot, verdict=verdict))[0].startswith(f"sgmon: {words}")
