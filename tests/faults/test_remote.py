"""Another machine whose link is cut, hangs or talks nonsense: what it was is shown, what it is now is unknown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sgmon.collect.probes.base import Clock
from sgmon.remote.hosts import reach
from sgmon.remote.merged import MergedSource
from sgmon.remote.source import RemoteSource
from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.watching import watching

SCRIPTS = {
    "refused": ("import sys; sys.exit('ssh: connect to host x port 22: Connection refused')", "refused"),
    "unknown": ("import sys; sys.exit('ssh: Could not resolve hostname x: Name or service not known')", "resolve"),
    "garbage": ("print('\\x1b[31mwelcome\\x07 to this host'); import sys; sys.stdin.read(9)", ""),
    "closed": ("pass", ""),
    "binary": ("import os; os.write(1, bytes(range(256)) * 500)", ""),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_link(screen: Screen, tmp_path: Path, name: str) -> None:
    script, words = SCRIPTS[name]
    program = tmp_path / "way.py"
    program.write_text(script + "\n")
    settings = Settings(hosts=("far",), via=f"{sys.executable} {program} {{}}", interval_s=0.2)
    clock = Clock()
    source = MergedSource([RemoteSource(reach("far", settings.via, ""), settings, clock)], clock)
    with watching(screen, settings, source=source) as watch:
        said = watch.until(lambda json: json["nodes"] and json["nodes"][0]["why"])
        node = said["nodes"][0]
        assert (node["name"], node["heard"]) == ("far", False)
        assert words in node["why"]
        assert said["state"] in ("unknown", "waiting"), said["headline"]
        assert not said["ranks"] and said["port"] is None
        text = watch.shows("far")
        assert "\x1b" not in text and "\x07" not in text
