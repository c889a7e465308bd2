"""Clocks that jump, and an sgmon that was stopped itself: ages are never negative, and nobody is blamed for it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.settings import Settings
from tests.faults.screen import Screen
from tests.faults.watching import ShiftedClock, Watch, watching
from tests.faults.world import TP0, TP1, World
from tests.proc.fake import BOOT

DAY_S = 86400.0


@pytest.fixture
def watch(world: World, screen: Screen) -> Iterator[Watch]:
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as made:
        made.until(lambda json: json["state"] == "progressing" and json["log"]["lines"] == 5)
        yield made


def ages(json: dict) -> list[float]:
    found = [json["since_s"], json["log"]["quiet_s"] or 0.0]
    return found + [one["last_sign_of_life"]["age_s"] for one in json["ranks"] if one["last_sign_of_life"]]


@pytest.mark.parametrize("by_s", [365 * DAY_S, -365 * DAY_S, -1.79e9])
def test_the_wall_clock_jumps(watch: Watch, world: World, monkeypatch: pytest.MonkeyPatch, by_s: float) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + by_s)
    world.says("after the jump")
    said = watch.until(lambda json: json["log"]["last_line"] == "after the jump")
    assert said["state"] == "progressing"
    assert all(0 <= age < 60 for age in ages(said)), ages(said)
    watch.shows("after the jump")


def test_the_wall_clock_is_set_while_the_server_lives(watch: Watch, world: World) -> None:
    """The kernel's boot time, from which starts are counted, goes back by an hour: the server has not become older."""
    started = watch.json["server"]["started"]
    (world.root / "stat").write_text(f"cpu  1 2 3\nbtime {BOOT - 3600}\n")
    looked_t = watch.snapshot.t
    watch.clock.shift_s = 60.0  # the next whole look is due
    watch.until(
        lambda _: any(p.name == "server" and (p.last_ok_t or 0.0) > looked_t + 60 for p in watch.snapshot.probes)
    )
    assert watch.json["server"]["started"] == started


def test_the_time_of_day_of_the_log_jumps_back(watch: Watch, world: World) -> None:
    world.says("[2020-01-01 00:00:00 TP0] the clock was set", "[2020-01-01 00:00:01 TP1] and runs on")
    said = watch.until(lambda json: json["log"]["lines"] == 7)
    assert said["state"] == "progressing"
    assert all(age >= 0 for age in ages(said))


class AnHourLater(ShiftedClock):
    """An hour is over at the moment at which ``link`` leads to ``later``: no look falls between the two."""

    def __init__(self, link: Path, later: Path) -> None:
        super().__init__()
        self._link, self._later = link, later

    @property
    def shift_s(self) -> float:  # type: ignore[override]
        return 3600.0 if self._link.readlink() == self._later else 0.0


def test_sgmon_itself_was_stopped(world: World, screen: Screen, tmp_path: Path) -> None:
    """Ctrl+Z for an hour: what moved meanwhile was not seen, and was no silence."""
    before, link, new = tmp_path / "before", tmp_path / "link", tmp_path / "new"
    shutil.copytree(world.root, before, symlinks=True)
    link.symlink_to(before)
    new.symlink_to(world.root)
    for pid, name in ((TP0, "TP0"), (TP1, "TP1")):
        io = "rchar: 9000000000\nwchar: 20\nsyscr: 1\nsyscw: 1\nread_bytes: 9000000000\nwrite_bytes: 0\n"
        world.rank(pid, name, cpu_ticks=100_000, io=io)
    settings = Settings(proc_root=str(link), interval_s=0.2)
    with watching(screen, settings, clock=AnHourLater(link, world.root)) as watch:
        watch.until(lambda json: json["state"] == "progressing" and json["log"]["lines"] == 5)
        new.replace(link)
        watch.until(lambda json: watch.snapshot.t > 3600.0)
        world.says("it went on")
        watch.until(lambda json: json["log"]["last_line"] == "it went on")
        assert [change for change in watch.json["verdicts"] if change["state"] in ("stalled", "crashed")] == []
        watch.shows("it went on")


def test_the_clock_of_the_file_server_is_ahead(world: World, screen: Screen) -> None:
    import os

    os.utime(world.log, (time.time() + 7 * DAY_S,) * 2)
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
        said = watch.until(lambda json: json["log"] and json["log"]["lines"] == 5)
        assert all(age >= 0 for age in ages(said))


@pytest.mark.parametrize("btime", ["btime 99999999999\n", "btime x\n"])
def test_the_time_of_the_boot_is_nonsense(world: World, screen: Screen, btime: str) -> None:
    (world.root / "stat").write_text(f"cpu  1 2 3\n{btime}")
    with watching(screen, Settings(proc_root=str(world.fake), interval_s=0.2)) as watch:
        watch.until(lambda json: len(json["ranks"]) == 3 and json["log"] and json["log"]["lines"])
        watch.shows("TP0", "TP1")
