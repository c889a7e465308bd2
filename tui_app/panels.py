"""The five panels of the overview. Imported when there is a server to show."""

from __future__ import annotations

from widgets.gpu import GpuPanel
from widgets.log_text import LogText
from widgets.logview import LogPanel
from widgets.panel import Panel
from widgets.port import PortPanel
from widgets.startup import StartupPanel
from widgets.workers import WorkersPanel


def make_panels(log_text: LogText, *, has_nodes: bool = False) -> dict[str, Panel]:
    """By the key that chooses them. has_nodes: several machines are watched; their panel has the port as well."""
    port: Panel = PortPanel(id="port")
    if has_nodes:
        from widgets.nodes import NodesPanel

        port = NodesPanel(id="port")
    return {
        "1": StartupPanel(id="startup"),
        "2": GpuPanel(id="gpus"),
        "3": WorkersPanel(id="workers"),
        "4": LogPanel(log_text, id="log"),
        "5": port,
    }
