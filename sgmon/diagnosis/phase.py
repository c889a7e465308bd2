"""The phase of the start: from the log, else from titles, mapped shards, compilers and the port."""

from __future__ import annotations

from sgmon.model import Snapshot

ORDER = (
    "launch",
    "spawn",
    "dist_init",
    "weights",
    "kv_cache",
    "graphs",
    "scheduler_ready",
    "disagg",
    "http",
    "warmup",
    "ready",
    "serving",
)

WORDS = {
    "launch": "launching",
    "spawn": "importing",
    "dist_init": "distributed initialisation",
    "weights": "weight load",
    "kv_cache": "KV cache",
    "graphs": "graph capture",
    "scheduler_ready": "scheduler start",
    "disagg": "disaggregation set-up",
    "http": "HTTP start",
    "warmup": "warm-up",
    "ready": "serving",
    "serving": "serving",
}


def words(phase: str) -> str:
    """ "weight load"; a draft model's phase says so."""
    name = phase.removeprefix("draft_")
    text = WORDS.get(name, name or "start")
    return f"draft model's {text}" if phase.startswith("draft_") else text


def during(phase: str) -> str:
    """ "in the weight load", "while importing"."""
    name = phase.removeprefix("draft_")
    if name in ("launch", "spawn", "ready", "serving", ""):
        return f"while {words(name)}" if name else "in the start"
    return f"in the {words(phase)}"


def order(phase: str) -> int:
    name = phase.removeprefix("draft_")
    return ORDER.index(name) if name in ORDER else -1


def phase_of_snapshot(snapshot: Snapshot) -> str:
    """The log's phase; what processes show when the log says nothing or is behind them."""
    shown = _from_processes(snapshot)
    logged = snapshot.log.phase
    if not logged or (logged in ("launch", "spawn") and order(shown) > order(logged)):
        return shown
    return logged


def _from_processes(snapshot: Snapshot) -> str:
    alive = [p for p in snapshot.procs.processes if not p.gone and p.state not in ("Z", "X")]
    schedulers = [p for p in alive if p.role == "scheduler"]
    port = snapshot.port
    if port is not None and port.answer == "http" and any(x.ours for x in port.listeners):
        return "ready" if port.status == 200 else "warmup"
    if not schedulers:
        return "spawn" if any(p.role == "importing" for p in alive) else "launch"
    if snapshot.log.lines:
        return "spawn"  # there is a log and it has not come to "init begin" yet: trust its order
    if any(p.shards is not None and p.shards.names for p in schedulers):
        return "weights"
    if any(p.compilers for p in schedulers):
        return "graphs"
    loaded = any(c.load_bytes for c in snapshot.clocks)
    return "kv_cache" if loaded else "dist_init"
