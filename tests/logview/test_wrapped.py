"""The index of a log that another program has wrapped: lines are described by what stands inside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sgmon.analyse.log.envelope import Envelope
from sgmon.analyse.log.index import LogIndex
from tests.logview.fakes import dated, reading

LINES = [dated(1, "Load weight begin. avail mem=1.0 GB", "TP0"), dated(2, "Scheduler hit an exception: Traceback (most recent call last):", "TP0"), "KeyError: 'x'\n"]  # fmt: skip


def kinds(path: Path, lines: list[str]) -> list[tuple[str, str, str]]:
    path.write_text("".join(lines), "utf-8")
    index = LogIndex()
    index.follow(reading(path))
    found = [(line.kind, line.rank, line.text) for _, line in index.block(0)]
    index.close()
    return found


def test_a_container_s_name(tmp_path: Path) -> None:
    found = kinds(tmp_path / "l", [f"llm-1  | {line}" for line in LINES])
    assert [(kind, rank) for kind, rank, _ in found] == [("milestone", "TP0"), ("error", "TP0"), ("error", "")]
    assert found[2][2] == "llm-1  | KeyError: 'x'"


def test_docker_s_json_is_shown_as_its_text(tmp_path: Path) -> None:
    found = kinds(tmp_path / "l", [json.dumps({"log": line, "stream": "stderr"}) + "\n" for line in LINES])
    assert [kind for kind, _, _ in found] == ["milestone", "error", "error"]
    assert found[2][2] == "KeyError: 'x'"


def test_another_family_is_known_by_its_lines(tmp_path: Path) -> None:
    found = kinds(tmp_path / "l", ["[01-16 03:44:15] Worker 0: Scheduler loop started.\n"])
    assert found[0][0] == "milestone"


def test_what_stands_around_the_lines_is_learned_once_however_often_the_log_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []
    learn = Envelope.learn

    def counted(self: Envelope, lines: list[str], early: bool = True) -> int | None:
        looked_at.extend(lines)
        return learn(self, lines, early)

    monkeypatch.setattr(Envelope, "learn", counted)
    path = tmp_path / "l"
    path.write_text("")
    index = LogIndex()
    for number in range(200):
        with path.open("a", encoding="utf-8") as out:
            out.write(f"llm-1  | {dated(number, 'Load weight begin. avail mem=1.0 GB', 'TP0')}")
        index.follow(reading(path))
        shown = index.block(0)
    assert [line.kind for _, line in shown] == ["milestone"] * 200
    assert len([line for line in looked_at if line]) < 2 * 200


def test_a_family_that_is_quoted_later_does_not_become_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "l"
    index = LogIndex()
    for line in (LINES[0], "[01-16 03:44:15] Worker 0: Scheduler loop started.\n"):
        with path.open("a", encoding="utf-8") as out:
            out.write(line)
        index.follow(reading(path))
        assert index.block(0)[0][1].kind == "milestone"
