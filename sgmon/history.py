"""Finished starts, in SQLite: what is usual here, for this model, on this machine.

One row a start, keyed from narrow to wide; its milestones and quiet gaps are kept as JSON. WAL where the file
system allows it; on NFS a plain rollback journal behind a lock file, because WAL needs shared memory that NFS
does not have (https://www.sqlite.org/wal.html, "all processes using a database must be on the same host").
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import sqlite3
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sgmon.flight import state_dir

SCHEMA = 1
#: how many finished starts of a key make its baseline
BASELINE = 10
_NETWORK = ("nfs", "cifs", "smb", "fuse", "lustre", "gpfs", "beegfs", "9p", "afs")

_TABLE = """
create table if not exists runs (
    id integer primary key,
    started real not null,
    host text not null, model text not null, version text not null, gpu text not null,
    parallel text not null, mount text not null, caches text not null,
    outcome text not null, duration_s real, lines integer,
    milestones text not null, gaps text not null, args text not null, env text not null,
    headline text not null default ''
);
create index if not exists runs_by_model on runs (model, version, parallel, gpu, host);
"""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What must be equal for two starts to be comparable. parallel: "tp8 dp1 pp1 n1"."""

    model: str
    version: str = ""
    parallel: str = ""
    gpu: str = ""
    host: str = ""
    mount: str = ""
    caches: str = ""


@dataclass(frozen=True, slots=True)
class Passed:
    """One milestone of a start: seconds since the server began, and its line in the log."""

    name: str
    at_s: float
    line: int
    rank: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished start."""

    key: RunKey
    started: float
    outcome: str
    duration_s: float | None
    lines: int
    milestones: tuple[Passed, ...] = ()
    gaps: tuple[tuple[float, int], ...] = ()
    args: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    headline: str = ""
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual for one milestone: seconds from the start and line number, median and p90 of ``count`` starts."""

    name: str
    median_s: float
    p90_s: float
    line: int
    count: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is usual for a key. ``like`` says in words how alike the starts are that it comes from."""

    like: str
    count: int
    ready_median_s: float | None = None
    ready_p90_s: float | None = None
    longest_gap_s: float | None = None
    lines: int | None = None
    milestones: tuple[Usual, ...] = field(default_factory=tuple)


#: narrow to wide: which parts of the key must be equal, and how that is said
_WIDENING: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("model", "version", "parallel", "gpu", "host", "mount", "caches"),
        "same model, version, parallel sizes, GPU, host, mount and caches",
    ),
    (("model", "version", "parallel", "gpu", "host"), "same model, version, parallel sizes, GPU and host"),
    (("model", "parallel", "gpu", "host"), "same model, parallel sizes, GPU and host, another SGLang version"),
    (("model", "parallel", "gpu"), "same model, parallel sizes and GPU, another host"),
)


class History:
    """The database. Every call opens, works and closes: sgmon may be killed at any time."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or state_dir() / "history.sqlite"
        self._network = _on_network(self.path.parent)

    def add(self, run: Run) -> int:
        """Store one finished start; returns its id."""
        key = run.key
        row: dict[str, Any] = {
            **asdict(key),
            "started": run.started,
            "outcome": run.outcome,
            "duration_s": run.duration_s,
            "lines": run.lines,
            "milestones": json.dumps([asdict(passed) for passed in run.milestones]),
            "gaps": json.dumps(run.gaps),
            "args": json.dumps(run.args),
            "env": json.dumps(run.env),
            "headline": run.headline,
        }
        names = ", ".join(row)
        marks = ", ".join(f":{name}" for name in row)
        with self._open() as db:
            cursor = db.execute(f"insert into runs ({names}) values ({marks})", row)
            return int(cursor.lastrowid or 0)

    def runs(self, limit: int = 50) -> list[Run]:
        """The newest starts, newest first."""
        with self._open() as db:
            rows = db.execute("select * from runs order by started desc limit ?", (limit,)).fetchall()
        return [_run(row) for row in rows]

    def get(self, number: int) -> Run | None:
        with self._open() as db:
            row = db.execute("select * from runs where id = ?", (number,)).fetchone()
        return None if row is None else _run(row)

    def baseline(self, key: RunKey) -> Baseline | None:
        """Median and p90 of the last ten ready starts of this key, else of the next wider one; None: none yet."""
        for names, words in _WIDENING:
            where = " and ".join(f"{name} = :{name}" for name in names)
            values = {name: getattr(key, name) for name in names}
            with self._open() as db:
                rows = db.execute(
                    f"select * from runs where outcome = 'ready' and {where} order by started desc limit {BASELINE}",
                    values,
                ).fetchall()
            if rows:
                return _baseline([_run(row) for row in rows], words)
        return None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._locked():
            db = sqlite3.connect(self.path, timeout=5.0)
            try:
                db.row_factory = sqlite3.Row
                db.execute(f"pragma journal_mode = {'delete' if self._network else 'wal'}")
                db.executescript(_TABLE)
                with db:
                    yield db
            finally:
                db.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._network:
            yield
            return
        with open(self.path.with_suffix(".lock"), "w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            yield


def fingerprint(args: Sequence[tuple[str, str]]) -> str:
    """A short name for a set of arguments."""
    return hashlib.sha256(json.dumps(sorted(args)).encode()).hexdigest()[:10]


def _run(row: sqlite3.Row) -> Run:
    key = RunKey(**{name: row[name] for name in RunKey.__dataclass_fields__})
    return Run(
        key=key,
        started=row["started"],
        outcome=row["outcome"],
        duration_s=row["duration_s"],
        lines=row["lines"],
        milestones=tuple(Passed(**passed) for passed in json.loads(row["milestones"])),
        gaps=tuple((gap[0], gap[1]) for gap in json.loads(row["gaps"])),
        args=tuple((name, value) for name, value in json.loads(row["args"])),
        env=tuple((name, value) for name, value in json.loads(row["env"])),
        headline=row["headline"],
        id=row["id"],
    )


def _baseline(runs: list[Run], words: str) -> Baseline:
    durations = [run.duration_s for run in runs if run.duration_s is not None]
    gaps = [max((gap for gap, _ in run.gaps), default=0.0) for run in runs]
    at: dict[str, list[Passed]] = {}
    for run in runs:
        seen: set[str] = set()
        for passed in run.milestones:
            if passed.name not in seen:
                seen.add(passed.name)
                at.setdefault(passed.name, []).append(passed)
    usual = tuple(
        Usual(
            name,
            statistics.median(passed.at_s for passed in all_),
            _p90([passed.at_s for passed in all_]),
            round(statistics.median(passed.line for passed in all_)),
            len(all_),
        )
        for name, all_ in at.items()
    )
    return Baseline(
        like=words,
        count=len(runs),
        ready_median_s=statistics.median(durations) if durations else None,
        ready_p90_s=_p90(durations) if durations else None,
        longest_gap_s=_p90(gaps),
        lines=round(statistics.median(run.lines for run in runs)),
        milestones=tuple(sorted(usual, key=lambda one: one.median_s)),
    )


def _p90(values: list[float]) -> float:
    """The value that nine of ten are not above (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-9 * len(ordered) // 10) - 1))]


def _on_network(folder: Path) -> bool:
    """Whether the folder lies on a network file system, by the longest matching mount of /proc/self/mounts."""
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return False
    for line in lines:
        _, point, fstype, *_ = line.split(" ")
        if (str(folder) + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            best, kind = point, fstype
    return kind.startswith(_NETWORK)
