"""Watched folders: count, size, newest change; bounded, and never an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sgmon.analyse.watched_dir import words
from sgmon.collect.probes import watchdir
from sgmon.collect.probes.base import Clock, Watched
from sgmon.model import WatchedDir
from sgmon.settings import Settings


def look(path: Path) -> WatchedDir:
    reading = watchdir.WatchDirProbe(Watched(Settings(watch_dirs=(str(path),)), Clock())).read()
    assert reading is not None
    return reading.dirs[0]


def write(path: Path, count: int, changed: float = 1000.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * count)
    os.utime(path, (changed, changed))


@pytest.mark.parametrize("see", [look, lambda path: watchdir.far(str(path), str(path))], ids=["near", "far"])
def test_files_below_count_and_links_do_not(tmp_path: Path, see) -> None:
    write(tmp_path / "out" / "a.pt", 5000)
    write(tmp_path / "out" / "rank1" / "b.pt", 300, 2_000_000_000.0)
    (tmp_path / "out" / "link").symlink_to("/usr")
    seen = see(tmp_path / "out")
    assert (seen.files, seen.size_bytes, seen.newest_epoch, seen.cut) == (2, 5300, 2e9, False)
    assert (seen.used_bytes or 0) >= 4096
    assert words(seen, 2_000_000_005.0).endswith("last change 5s ago")


def test_not_there_yet(tmp_path: Path) -> None:
    seen = look(tmp_path / "later")
    assert (seen.files, seen.note) == (None, "not there yet")
    assert watchdir.far("x", str(tmp_path / "later")).files is None
    assert words(seen, 0.0) == "not there yet"


def test_no_more_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdir, "MOST_ENTRIES", 10)
    for number in range(30):
        write(tmp_path / f"{number}", 1)
    seen = look(tmp_path)
    assert (seen.files, seen.cut) == (10, True)
    assert words(seen, 2e9).startswith("at least 10 files")
    assert watchdir.far("x", str(tmp_path)).cut


def test_a_sparse_file_grows_by_what_it_occupies(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    with open(path, "wb") as file:
        file.truncate(50 << 20)
    before = look(tmp_path)
    with open(path, "r+b") as file:
        file.write(b"x" * (1 << 20))
        file.flush()
        os.fsync(file.fileno())
    after = look(tmp_path)
    assert after.size_bytes == before.size_bytes
    assert (after.used_bytes or 0) > (before.used_bytes or 0)


def test_silent_when_nothing_is_watched() -> None:
    assert watchdir.WatchDirProbe(Watched(Settings(), Clock())).read() is None
