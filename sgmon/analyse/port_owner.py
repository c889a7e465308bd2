"""Whose a listening socket is, where it was read before it was known which server is watched."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.model import Snapshot


def with_owners(snapshot: Snapshot) -> Snapshot:
    """The snapshot with ``Listener.ours`` told by the server's tree, for listeners of a known pid.

    A process that was in the tree stays the server's: the port may have been read just before its end.
    """
    port, processes = snapshot.port, snapshot.procs.processes
    if port is None or not processes or all(x.ours is not None or x.pid is None for x in port.listeners):
        return snapshot
    tree = {process.pid for process in processes} | {clock.pid for clock in snapshot.clocks}
    if snapshot.server is not None:
        tree.add(snapshot.server.pid)
    listeners = tuple(
        replace(x, ours=x.pid in tree) if x.ours is None and x.pid is not None else x for x in port.listeners
    )
    return replace(snapshot, port=replace(port, listeners=listeners))
