"""What a 200 of /health proves, by version."""

from __future__ import annotations


def ok_means_ready(version: str) -> bool:
    """Whether /health says 200 only after the warm-up: since 0.4.9 (http_server.py ``health_generate``)."""
    early = version.startswith(("0.1", "0.2", "0.3", "0.4.")) and not version.startswith(("0.4.10", "0.4.9"))
    return not early
