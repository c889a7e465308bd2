"""The other machines of a server that runs on several: who they are, as far as this one tells. Only proposed."""

from __future__ import annotations

from sgmon.model import NextStep, Role, Snapshot
from sgmon.text import quoted, without_prefix

#: what the proposal is called
WATCH_THEM = "Watch the other nodes as well (by ssh)"
#: so many are named; the user knows the rest
MOST = 8
_LOCAL = ("127.", "0.0.0.0", "[::1]", "[::]", "::1", "localhost")
_BAD = frozenset({"waiting-by-design", "suspect", "stalled", "crashed", "stopped", "slow"})


def steps(snapshot: Snapshot, state: str) -> tuple[NextStep, ...]:
    """The command that watches all of them, where the reason may be on another; () else."""
    server = snapshot.server
    if server is None or server.args.nnodes < 2 or state not in _BAD:
        return ()
    found = others(snapshot)
    names = " ".join(f"--host {quoted(name)}" for name in found) or "--host NAME"
    return (NextStep(WATCH_THEM, f"sgmon --host localhost {names}"),)


def others(snapshot: Snapshot) -> tuple[str, ...]:
    """Hosts or addresses: of the rendezvous, unless this is the node that offers it, then of the ranks' peers."""
    args = snapshot.server.args if snapshot.server is not None else None
    found: list[str] = []
    if args is not None and args.node_rank > 0:
        found.append(_host(without_prefix(args.dist_init_addr, "tcp://")))
    own = set()
    for process in snapshot.procs.processes:
        if process.role in (Role.WORKER, Role.IMPORTING):
            own |= {_host(peer.local) for peer in process.tcp}
            found += [_host(peer.remote) for peer in process.tcp if peer.state in ("ESTAB", "SYN_SENT")]
    told = [name for name in dict.fromkeys(found) if name and name not in own and not name.startswith(_LOCAL)]
    return tuple(told[:MOST])


def _host(address: str) -> str:
    """ "10.0.0.2" of "10.0.0.2:20000"; an IPv6 address without brackets, as ssh takes it."""
    return address.rpartition(":")[0].strip("[]") if address else ""
