"""What sgmon keeps is for its owner alone, whatever the umask is and whoever made the folder; what it writes where others
may write is never theirs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon import config
from sgmon.commands import bundling
from sgmon.export.bundle import Bundle
from sgmon.history.database import StartDatabase
from sgmon.model import Event, LogReading
from sgmon.paths import write_whole
from sgmon.recording.codec import read
from sgmon.recording.ring_buffer import RingBuffer, new_path
from sgmon.recording.writer import Recorder
from tests.security.poison import NAMED, SECRET
from tui_app.copying import write_text


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=["umask 0", "umask 022", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    old = os.umask(request.param)
    yield request.param
    os.umask(old)


def open_to_others(folder: Path) -> list[str]:
    """What below and with the folder somebody else may read, write or enter."""
    found = []
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o077:
            found.append(f"{path.relative_to(folder)} {mode:o}")
    return found


def keep_everything(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    """Each kind of file that a watch keeps."""
    ring = RingBuffer(0.0)
    ring.write(Event(1.0, "log", LogReading("x", text=f"api_key={NAMED}\n{SECRET}\n")))
    ring.save(new_path("20261130-120000", "stalled", 7), "a note")
    assert StartDatabase().runs() == []
    config.keep_theme("nord")
    monkeypatch.chdir(nowhere)
    nowhere.chmod(0o500)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    bundling.write(Bundle("r.zip", b"PK", (), ()), None)


@pytest.mark.parametrize("already", [None, 0o755, 0o777], ids=["no folder", "folder 755", "folder 777"])
def test_all_files_of_a_watch(
    umask: int, already: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "a" / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    if already is not None:
        for folder in (home / "sgmon", home / "sgmon" / "flights", home / "sgmon" / "reports"):
            folder.mkdir(parents=True)
            folder.chmod(already)
        for name in ("history.sqlite", "theme"):
            (home / "sgmon" / name).touch()
            (home / "sgmon" / name).chmod(0o666)
    (tmp_path / "nowhere").mkdir()
    keep_everything(monkeypatch, tmp_path / "nowhere")
    kept = {path.name for path in (home / "sgmon").rglob("*") if path.is_file()}
    assert {"history.sqlite", "theme", "r.zip"} <= kept and any(name.endswith("stalled.jsonl.gz") for name in kept)
    assert open_to_others(home / "sgmon") == []
    if already is None:
        assert open_to_others(tmp_path / "a") == [], "nobody may put another folder in its place"


def test_a_folder_of_somebody_else_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "sgmon").mkdir(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert StartDatabase().runs() == []


def test_a_recording_masks_secrets_and_is_private(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.touch(0o644)
    recorder = Recorder(path, 0.0)
    recorder.write(Event(1.0, "log", LogReading("x", text=f"begin api_key={NAMED}\nsecond {SECRET}\n")))
    assert recorder.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    [event] = read(path)[1]
    assert isinstance(event.reading, LogReading) and "begin" in event.reading.text
    assert NAMED not in event.reading.text and SECRET not in event.reading.text


def test_nothing_is_written_into_a_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In /tmp another user may have made it, or a link to a file of ours."""
    monkeypatch.setattr("time.strftime", lambda _: "20261130-120000")
    theirs, victim = tmp_path / "sgmon-copied-20261130-120000.txt", tmp_path / "victim"
    theirs.write_text("theirs")
    (tmp_path / "sgmon-copied-20261130-120000-1.txt").symlink_to(victim)
    path = write_text("ours", "copied", tmp_path)
    assert path.name == "sgmon-copied-20261130-120000-2.txt" and path.read_text() == "ours\n"
    assert theirs.read_text() == "theirs" and not victim.exists()

    (tmp_path / "r.zip.part").symlink_to(victim)
    write_whole(tmp_path / "r.zip", [b"ours"])
    assert (tmp_path / "r.zip").read_bytes() == b"ours" and not victim.exists()
    (tmp_path / "s.zip").symlink_to(victim)
    write_whole(tmp_path / "s.zip", [b"ours"])
    assert not victim.exists() and stat.S_IMODE((tmp_path / "s.zip").lstat().st_mode) == 0o600
