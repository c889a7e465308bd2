"""What answers of /health prove, by version."""

from __future__ import annotations

from sgmon.model import ServerArgs
from sgmon.versions import release


def ok_means_ready(version: str) -> bool:
    """Whether /health says 200 only after the warm-up: since 0.4.9 (http_server.py ``health_generate``)."""
    numbers = release(version)
    return numbers is None or numbers >= (0, 4, 9)


def why_503(version: str, args: ServerArgs) -> str:
    """A known reason for a 503 that stays; "" for none."""
    if version == "0.4.10.post2" and args.skip_server_warmup:
        return "0.4.10.post2 never leaves 503 with --skip-server-warmup"
    return ""
