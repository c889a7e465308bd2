"""The family of servers that a snapshot is of."""

from __future__ import annotations

from sgmon.model import Snapshot
from sgmon.servers import registry
from sgmon.servers.family import ServerFamily


def family_of(snapshot: Snapshot) -> ServerFamily:
    """The family of the watched server, else of the log; the most common one while neither is known."""
    name = snapshot.server.family if snapshot.server is not None else snapshot.log.family
    return registry.get(name) if name else registry.families()[0]
