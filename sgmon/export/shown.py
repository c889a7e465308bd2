"""What the text and the JSON of a snapshot show alike: safe text, the port in words, which processes, how long."""

from __future__ import annotations

import re
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from sgmon import units
from sgmon.model import Mark, PortReading, Process, Rank, Server, Snapshot
from sgmon.model.roles import Role
from sgmon.servers import registry
from sgmon.text import clean
from sgmon.text import safe as safe_text

_SHOWN_ROLES = frozenset(
    {Role.LAUNCHER, Role.WORKER, Role.ENGINE, Role.IMPORTING, Role.CONTROLLER, Role.API_SERVER, Role.DETOKENIZER}
)


Value = TypeVar("Value")


def all_safe(value: Value) -> Value:
    """The value with every text in it safe: what a field that is new forgets is caught here."""
    made: Any = value
    if isinstance(value, str):
        made = safe(value)
    elif isinstance(value, tuple):
        made = tuple(all_safe(item) for item in value)
        made = value if made == value else made
    elif isinstance(value, dict):
        made = {all_safe(name): all_safe(item) for name, item in value.items()}
    elif isinstance(value, Struct):
        found = {name: getattr(value, name) for name in value.__struct_fields__}
        fresh = {name: all_safe(old) for name, old in found.items() if isinstance(old, (str, tuple, dict, Struct))}
        fresh = {name: item for name, item in fresh.items() if item is not found[name]}
        made = replace(value, **fresh) if fresh else value
    return cast(Value, made)


def inline(text: str) -> str:
    """Foreign text for Markdown: no code, link, picture or HTML of its own. Masked where the whole page is."""
    return re.sub(r"([\\`<\[|])", r"\\\1", clean(text))


def safe(text: str | float | None) -> str:
    """Foreign text without escapes and secrets; "" for None and 0."""
    return safe_text(str(text)) if text else ""


def shown_processes(snapshot: Snapshot) -> tuple[Process, ...]:
    """Those whose life and death matter to a start; ranks that have ended come last, with their last facts."""
    seen = tuple(process for process in snapshot.procs.processes if process.role in _SHOWN_ROLES)
    pids = {process.pid for process in seen}
    return (*seen, *(_ended(rank) for rank in snapshot.ranks if rank.pid not in pids))


def _ended(rank: Rank) -> Process:
    clock = rank.clock
    if clock is None:
        return replace(rank.process, gone=True)
    return replace(rank.process, gone=True, exit_code=clock.exit_code, exit_signal=clock.exit_signal)


def role_label(server: Server | None, process: Process) -> str:
    """What the server's family calls the role of this process: "scheduler"."""
    return registry.role_label("" if server is None else server.family, process.role)


def last_activity(snapshot: Snapshot, process: Process) -> Mark | None:
    """The newest sign of activity of a process; of a rank the newest that counts. None: none yet."""
    rank = next((rank for rank in snapshot.ranks if rank.pid == process.pid), None)
    if rank is not None:
        return rank.last_mark
    clock = next((clock for clock in snapshot.clocks if clock.pid == process.pid), None)
    return clock.marks[0] if clock is not None and clock.marks else None


def port_words(port: PortReading) -> str:
    """What the port answers and who holds it, in words."""
    owner = ""
    for listener in port.listeners:
        whose = {True: "the server's own", False: "ANOTHER process", None: "owner unknown"}[listener.ours]
        name = f" {safe(listener.name)}" if listener.name else ""
        owner = f", held by pid {listener.pid or '?'}{name} ({whose})"
    words = {
        "refused": "nothing listens",
        "no_response": "accepts, but does not answer",
        "reset": "resets the connection (TLS?)",
        "timeout": "connect times out",
        "skipped": "not probed",
    }.get(port.answer, f"{port.path} {port.status}")
    latency = f" in {units.duration(port.latency_s)}" if port.latency_s is not None else ""
    note = f" ({safe(port.note)})" if port.note else ""
    return f"{port.where} {words}{latency}{owner}{note}"
