"""What one condition of a cause looks at outside of stacks: a process in /proc, the log's error, NCCL, the port."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sgmon.model import LogState, PortReading, Process, RasReading, Role
from sgmon.text import safe


def has_error(log: LogState | None, kinds: str) -> bool:
    """Whether the log's first error is of one of these kinds."""
    return log is not None and log.error is not None and log.error.kind in kinds.split("|")


def in_state(process: Process | None, letters: str) -> bool:
    """Whether its main thread is in one of these states; Z is one."""
    return process is not None and not process.gone and process.state in letters


def has_thread_in(process: Process | None, letter: str) -> bool:
    """Whether any of its threads is in one of these states."""
    return process is not None and any(state[:1] in letter and count > 0 for state, count in process.thread_states)


def text_of(process: Process | None, key: str, regex: re.Pattern[str]) -> str | None:
    """The first text of this kind that fits, cleaned; None when none does or it cannot be seen."""
    if process is None:
        return None
    for text in _texts(process, key):
        if text and regex.search(text):
            return safe(text, 100)
    return None


def _texts(process: Process, key: str) -> tuple[str, ...]:
    if key == "wchan":
        return (process.wchan or "",)
    if key == "call":
        call = process.call
        return (f"{call.name} {call.target}".strip(),) if call is not None else ()
    if key == "fd":
        return tuple(f"{fd.target} {fd.note}".strip() for fd in process.fds)
    if key == "lock":
        return (process.waits_for_lock,)
    if key == "tcp":
        return tuple(f"{peer.state} {peer.local} -> {peer.remote}" for peer in process.tcp)
    return (process.shards.fstype,) if process.shards is not None else ()


def compilers_are(wanted: str, processes: Sequence[Process]) -> bool:
    """Whether there are some compilers, or none, below these processes; without processes nobody knows."""
    if not processes:
        return False
    some = any(process.compilers or process.role == Role.COMPILER for process in processes)
    return some == (wanted == "some")


def ras_shows(ras: RasReading, wanted: str) -> bool:
    """Whether NCCL says so: no_response, incomplete, mismatch (unequal and unchanged), crossed."""
    if wanted == "no_response":
        return ras.answer == "no_response" or ras.unanswered_connections > 0
    comms = ras.communicators if ras.answer == "ok" else ()
    if wanted == "incomplete":
        return any(rank.missing for comm in comms for rank in comm.ranks)
    unchanged = ras.unequal_unchanged is True
    return unchanged and any(comm.crossed == (wanted == "crossed") for comm in comms if comm.behind)


def port_shows(port: PortReading, wanted: str) -> bool:
    """Whether the port answers so, or is held by another server ("foreign")."""
    if wanted == "foreign":
        return any(listener.ours is False for listener in port.listeners)
    return port.answer == wanted
