"""The summary for people as a whole: no row takes the place of those before it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.log.envelope_writers import container
from sgmon.analyse.log.summary import headline, text
from sgmon.model import LogError, QuietGap
from tests.log.loading import fold

CRASH = """[2026-01-29 13:12:45 TP0] Load weight begin. avail mem=21.63 GB
[2026-01-29 13:12:50 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/a.py", line 1, in load_model
FileNotFoundError: [Errno 2] No such file: 'a'
"""


def test_rows_of_a_crash() -> None:
    rows = text(fold(CRASH), "server.log").splitlines()
    assert next(row for row in rows if row.startswith("First cause")).startswith("First cause on TP0, line 4: ")
    assert "Milestones (line, seconds since the first dated line):" in rows
    assert rows[-2] == "" and "sed -n '1,29p' server.log" in rows[-1]


def test_what_was_survived_comes_after_the_other_rows() -> None:
    state = replace(fold(CRASH), survived=LogError("oom", 7, "CUDA out of memory"), longest_gap=QuietGap(61.0, 1))
    rows = text(state, "server.log").splitlines()
    assert "Survived, line 7: CUDA out of memory" in rows
    assert "longest silence: 1m01s after line 1" in rows
    assert "Milestones (line, seconds since the first dated line):" in rows


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ({"kubernetes": {"pod_name": "a"}}, "a"),
        ({"resource": {"labels": {"pod_name": "b"}}}, "b"),
        ({"container_name": "c"}, "c"),
        ({"pod": "d", "_HOSTNAME": "e"}, "d"),
        ({"_HOSTNAME": "e"}, "e"),
        ({"kubernetes": "text"}, ""),
        ({"container_name": 7}, ""),
        (["a"], ""),
    ],
)
def test_where_a_collector_names_the_writer(found: object, name: str) -> None:
    assert container(found) == name


def test_ctrl_c_is_no_sigterm() -> None:
    load = "[2026-01-29 13:12:38 TP0] Load weight begin. avail mem=1.0 GB\n"
    ctrl_c = (
        'Traceback (most recent call last):\n  File "/x/launch_server.py", line 1, in <module>\nKeyboardInterrupt\n'
    )
    assert "stopped by Ctrl-C, line 2" in headline(fold(load + ctrl_c))
    assert "SIGTERM" not in text(fold(load + ctrl_c), "server.log")
