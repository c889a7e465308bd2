"""The ranks of a snapshot, and its other processes, as ``sgmon status --json`` has them."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.export.json_readings import missing_reports, rounded
from sgmon.export.json_schema import ActivityReport, RankReport, WaitReport
from sgmon.export.shown import last_activity, role_label, safe, shown_processes
from sgmon.model import Mark, Process, Rank, Snapshot, WaitKind


def rank_reports(snapshot: Snapshot) -> tuple[RankReport, ...]:
    """Every process that is shown, of each node."""
    found: list[RankReport] = []
    heard = {view.name: view.heard for view in snapshot.nodes}
    for name, part in snapshot.parts:
        by_pid = {rank.pid: rank for rank in part.ranks}
        rows = [_rank(part, process, by_pid.get(process.pid)) for process in shown_processes(part)]
        if not heard.get(name, True):  # what it was; what it is now nobody knows
            rows = [replace(row, rank_state=None if row.rank_state is None else "unknown") for row in rows]
        found += (replace(row, node=safe(name)) for row in rows)
    return tuple(found)


def _rank(snapshot: Snapshot, process: Process, rank: Rank | None) -> RankReport:
    """rank: None for a process that is no subject of the verdict."""
    clock = next((clock for clock in snapshot.clocks if clock.pid == process.pid), None)
    return RankReport(
        rank=process.rank,
        rank_inferred=process.rank_inferred,
        role=process.role.value,
        role_label=role_label(snapshot.server, process),
        pid=process.pid,
        state=process.state,
        rank_state=None if rank is None else rank.state.value,
        wait=None if rank is None else _wait(rank),
        gone=process.gone,
        exit_code=process.exit_code,
        exit_signal=process.exit_signal,
        milestone=None if rank is None or not rank.passed else rank.passed[-1].name,
        phase=None if rank is None else rank.phase or None,
        cpu_percent=None if clock is None else rounded(clock.cpu_percent),
        read_bytes_s=None if clock is None else rounded(clock.read_rate),
        rss_anon_bytes=process.rss_anon_bytes,
        rss_file_bytes=process.rss_file_bytes,
        wchan=process.wchan,
        call=None if process.call is None else process.call.name,
        call_target=None if process.call is None else safe(process.call.target),
        same_log=process.same_log,
        shards=None if process.shards is None else len(process.shards.names),
        compilers=len(process.compilers),
        last_sign_of_life=_activity(last_activity(snapshot, process), snapshot.t),
        missing=missing_reports(process.missing),
    )


def _wait(rank: Rank) -> WaitReport | None:
    wait = rank.wait
    if wait.kind is WaitKind.NONE:
        return None
    return WaitReport(wait.kind.value, safe(wait.text), safe(wait.target), wait.holder)


def _activity(mark: Mark | None, t: float) -> ActivityReport | None:
    return None if mark is None else ActivityReport(mark.signal, round(t - mark.t, 1), safe(mark.text))
