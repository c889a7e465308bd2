"""Processes of a server that is gone: they may hold its port and its GPU memory, and nobody ends them."""

from __future__ import annotations

from collections.abc import Iterable

from sgmon.model import Evidence, Orphan, Snapshot
from sgmon.text import clean

SHOWN = 3


def orphan_facts(snapshot: Snapshot, named: Iterable[Evidence] = ()) -> tuple[Evidence, ...]:
    """Those that listen on a port, one by one, the watched server's first; the rest as one. Left out: those that a
    fact of ``named`` tells of, and processes of the watched server itself."""
    known = {fact.pid for fact in named} | {process.pid for process in snapshot.procs.processes}
    left = [orphan for orphan in snapshot.orphans if orphan.pid not in known]
    port = snapshot.server.port if snapshot.server is not None else snapshot.asked_port
    listening = sorted((one for one in left if one.ports), key=lambda one: port not in one.ports)
    facts = [_listens(one) for one in listening[:1]]
    rest = [one for one in left if one not in listening[:1]]
    if rest:
        pids = ", ".join(f"{one.pid} ({clean(one.title, 40)})" for one in rest[:SHOWN])
        more = f" and {len(rest) - SHOWN} more" if len(rest) > SHOWN else ""
        noun = "process" if len(rest) == 1 else "processes"
        text = f"{len(rest)} {noun} {_whose(rest)}: pid {pids}{more}"
        facts.append(Evidence("proc", text, pid=rest[0].pid))
    return tuple(facts)


def _listens(orphan: Orphan) -> Evidence:
    ports = ", ".join(map(str, orphan.ports[:SHOWN]))
    text = f"pid {orphan.pid} ({clean(orphan.title, 40)}) {_whose([orphan])} listens on port {ports}"
    return Evidence("port", text, pid=orphan.pid)


def _whose(orphans: list[Orphan]) -> str:
    """ "of a server that is gone"; where a launcher lives that may be theirs, only that the parent is gone."""
    pids = sorted({one.launcher for one in orphans if one.launcher is not None})
    if not pids:
        return "of a server that is gone"
    return f"whose parent is gone, perhaps of the server of pid {', '.join(map(str, pids))}"


def other_servers(snapshot: Snapshot) -> tuple[Evidence, ...]:
    """The servers on this machine that are not watched: one fact; () without any."""
    own = snapshot.server.pid if snapshot.server is not None else None
    others = [one for one in snapshot.candidates if one.pid != own]
    if own is None or not others:
        return ()
    names = ", ".join(f"pid {one.pid} (port {one.port or 'unknown'})" for one in others[:SHOWN])
    return (Evidence("proc", f"not watched here: {names}", pid=others[0].pid),)
