"""The ``--config FILE.yaml`` of the server (sglang >= 0.5.3.post3: srt/server_args_config_parser.py)."""

from __future__ import annotations

from collections.abc import Mapping

from sgmon.discovery.inner import Inside

_LIMIT = 1 << 20


def read(inside: Inside, path: str) -> Mapping[str, object]:
    """Names and values of the file; {} when it cannot be read, or is no mapping."""
    import yaml  # 15 ms, for the few servers that use it

    try:
        found = yaml.safe_load(inside.text(path, _LIMIT))
    except yaml.YAMLError:
        return {}
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}
