"""Finished starts, in SQLite. One row a start; its milestones and quiet gaps are kept as JSON.

WAL where the file system allows it; where another machine answers for it a plain rollback journal behind a lock
file, because WAL needs shared memory (https://www.sqlite.org/wal.html: "all processes using a database must be on
the same host"). Every call opens, works and closes: sgmon may be killed at any time.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from sgmon.history.baseline import baseline
from sgmon.history.finished_start import FinishedStart, PassedMilestone, StartKey, flags_of
from sgmon.json_text import as_json, readable
from sgmon.model import Baseline
from sgmon.paths import make_private, open_private, state_dir
from sgmon.proc import mounts

SCHEMA = 2
BUSY_S = 5.0
#: starts that are kept; the oldest go
KEPT_RUNS = 2000
#: starts of one model that a baseline is looked for in
_LOOKED_AT = 200

_TABLE = """
create table if not exists runs (
    id integer primary key,
    started real not null, pid integer not null,
    host text not null, model text not null, version text not null, gpu text not null,
    parallel text not null, mount text not null, caches text not null,
    outcome text not null, duration_s real, lines integer not null, quiet_s real,
    milestones text not null, gaps text not null, args text not null, env text not null, own text not null,
    headline text not null, log text not null, foretold text not null default '[]',
    unique (host, pid, started)
);
create index if not exists runs_by_model on runs (model, parallel, gpu, started);
"""


class DatabaseError(Exception):
    """The history cannot be used. words: one sentence; remedy: what to try."""

    def __init__(self, words: str, remedy: str = "") -> None:
        super().__init__(words)
        self.words = words
        self.remedy = remedy


class StartDatabase:
    """The database of finished starts."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        return self._path or state_dir() / "history.sqlite"

    def add(self, run: FinishedStart) -> int:
        """Store one finished start; returns its id. Of one start one row is kept: "ready" is not taken back."""
        row: dict[str, Any] = {
            **{name: value for name, value in asdict(run.key).items() if name != "flags"},  # they are in args
            "started": round(run.started, 2),
            "pid": run.pid,
            "outcome": run.outcome,
            "duration_s": run.duration_s,
            "lines": run.lines,
            "quiet_s": run.quiet_s,
            "milestones": _json(run.milestones),
            "gaps": _json(run.gaps),
            "args": _json(run.args),
            "env": _json(run.env),
            "own": _json(run.own),
            "headline": run.headline,
            "log": run.log,
            "foretold": _json(run.foretold),
        }
        row = {name: readable(value) if isinstance(value, str) else value for name, value in row.items()}
        names = ", ".join(row)
        marks = ", ".join(f":{name}" for name in row)
        changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in ("host", "pid", "started"))
        with self._open() as db:
            db.execute(
                f"insert into runs ({names}) values ({marks}) on conflict (host, pid, started) do update "
                f"set {changes} where runs.outcome != 'ready' or excluded.outcome = 'ready'",
                row,
            )
            same = "select id from runs where host = :host and pid = :pid and started = :started"
            found = db.execute(same, row).fetchone()
            db.execute(
                "delete from runs where id not in (select id from runs order by started desc limit ?)", (KEPT_RUNS,)
            )
            return int(found[0])

    def runs(self, limit: int = 50, model: str = "") -> list[FinishedStart]:
        """The newest starts, newest first. model: its name, or a part of it."""
        with self._open() as db:
            rows = db.execute(
                "select * from runs where instr(model, ?) order by started desc limit ?", (model, limit)
            ).fetchall()
        return [_start(row) for row in rows]

    def get(self, number: int) -> FinishedStart | None:
        with self._open() as db:
            row = db.execute("select * from runs where id = ?", (number,)).fetchone()
        return None if row is None else _start(row)

    def baseline(self, key: StartKey) -> Baseline | None:
        """What is usual for this key, or for the next wider one that has starts; None: none yet."""
        key = replace(key, model=readable(key.model))
        with self._open() as db:
            rows = db.execute(
                "select * from runs where outcome = 'ready' and model = ? and parallel = ? and gpu = ? "
                "order by started desc limit ?",
                (key.model, key.parallel, key.gpu, _LOOKED_AT),
            ).fetchall()
        return baseline([_start(row) for row in rows], key)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            path = self.path
            remote = on_network(path.parent)
            with _locked(path, remote):
                make_private(path)  # SQLite gives its other files the mode of this one
                db = sqlite3.connect(path, timeout=BUSY_S)
                try:
                    _prepare(db, path, remote)
                    with db:
                        yield db
                finally:
                    db.close()
        except OSError as err:
            where = err.filename or "its folder"
            raise DatabaseError(f"the history cannot be used: {where}: {err.strerror}", "set XDG_STATE_HOME") from err
        except sqlite3.Error as err:
            remedy = f"move the file away if it is damaged: mv {path} {path}.old"
            if getattr(err, "sqlite_errorname", "") in ("SQLITE_BUSY", "SQLITE_LOCKED") or "locked" in str(err):
                remedy = f"another program holds it: fuser -v {path}"
            raise DatabaseError(f"the history {path} cannot be used: {err}", remedy) from err


def on_network(folder: Path) -> bool:
    """Whether the folder lies on a file system that another machine answers for."""
    try:
        mount = mounts.of_path(mounts.read("/proc"), os.path.abspath(folder))
    except OSError:
        return False
    return mount is not None and mount.remote


@contextmanager
def _locked(path: Path, needed: bool) -> Iterator[None]:
    if not needed:
        yield
        return
    with open(open_private(path.with_suffix(".lock")), "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        yield


def _prepare(db: sqlite3.Connection, path: Path, remote: bool) -> None:
    """Bring the tables to this version; one process at a time, for SQLite does not wait to change its journal."""
    db.row_factory = sqlite3.Row
    if _version(db, path) == SCHEMA:
        return
    with _locked(path, not remote):  # a remote one is locked already
        version = _version(db, path)
        if version < SCHEMA:
            db.execute(f"pragma journal_mode = {'delete' if remote else 'wal'}")
            db.executescript(_TABLE)
            if version == 1:
                db.execute("alter table runs add column foretold text not null default '[]'")
            db.execute(f"pragma user_version = {SCHEMA}")


def _version(db: sqlite3.Connection, path: Path) -> int:
    version: int = db.execute("pragma user_version").fetchone()[0]
    if version > SCHEMA:
        raise DatabaseError(f"the history {path} was written by a newer sgmon", "upgrade sgmon")
    return version


def _json(value: object) -> str:
    return as_json(value).decode()


def _start(row: sqlite3.Row) -> FinishedStart:
    args = msgspec.json.decode(row["args"], type=tuple[tuple[str, str], ...])
    parts = {name: row[name] for name in StartKey.__struct_fields__ if name != "flags"}
    return FinishedStart(
        key=StartKey(**parts, flags=flags_of(args)),
        started=row["started"],
        pid=row["pid"],
        outcome=row["outcome"],
        duration_s=row["duration_s"],
        lines=row["lines"],
        quiet_s=row["quiet_s"],
        milestones=msgspec.json.decode(row["milestones"], type=tuple[PassedMilestone, ...]),
        gaps=msgspec.json.decode(row["gaps"], type=tuple[tuple[float, int], ...]),
        args=args,
        env=msgspec.json.decode(row["env"], type=tuple[tuple[str, str], ...]),
        own=msgspec.json.decode(row["own"], type=tuple[tuple[str, float], ...]),
        headline=row["headline"],
        log=row["log"],
        foretold=msgspec.json.decode(row["foretold"], type=tuple[str, ...]),
        id=row["id"],
    )
