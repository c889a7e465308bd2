"""The stack rules of the server that is watched."""

from __future__ import annotations

from sgmon.model import Server
from sgmon.servers import registry
from sgmon.servers.family import StackRules


def rules_of(server: Server | None) -> StackRules:
    """Those of its family; the general ones while there is no server."""
    return registry.get(server.family).stacks if server is not None else StackRules()
