"""The ``--config FILE.yaml`` of the server (sglang >= 0.5.3.post3: srt/server_args_config_parser.py)."""

from __future__ import annotations

from collections.abc import Mapping

from sgmon.proc import files
from sgmon.proc.guard import Guard, HungError
from sgmon.target.inner import Inside

_LIMIT = 1 << 20
_GUARD: Guard[bytes] = Guard()


def read(inside: Inside, path: str) -> Mapping[str, object]:
    """Names and values of the file; {} when it cannot be read, or lies where a read may hang."""
    import yaml  # 15 ms, for the few servers that use it

    if inside.remote(path):
        return {}
    try:
        where = inside.reach(path)
        found = yaml.safe_load(_GUARD.run(where, lambda: files.read(where, _LIMIT), 1.0))
    except (HungError, OSError, yaml.YAMLError, UnicodeDecodeError):
        return {}
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}
