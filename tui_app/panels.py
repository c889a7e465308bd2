"""The five panels of the overview. Imported when there is a server to show."""

from __future__ import annotations

from widgets.gpu import GpuPanel
from widgets.log_text import LogText
from widgets.logview import LogPanel
from widgets.panel import Panel
from widgets.port import PortPanel
from widgets.startup import StartupPanel
from widgets.workers import WorkersPanel


def make_panels(log_text: LogText) -> dict[str, Panel]:
    """By the key that chooses them."""
    return {
        "1": StartupPanel(id="startup"),
        "2": GpuPanel(id="gpus"),
        "3": WorkersPanel(id="workers"),
        "4": LogPanel(log_text, id="log"),
        "5": PortPanel(id="port"),
    }
