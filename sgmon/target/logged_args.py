"""The arguments from the ``server_args=`` line of the log, for a server whose title hides its command line."""

from __future__ import annotations

from sgmon.model import ServerArgs
from sgmon.proc import files
from sgmon.proc.guard import Guard, HungError
from sgmon.target import logfile
from sgmon.target.inner import Inside

_MARK = b"server_args="
_FIRST = 1 << 20  # the line comes before the children start; it is about 19 KB long (0.5.23)
_GUARD: Guard[bytes] = Guard()


def find(inside: Inside) -> ServerArgs | None:
    """None: no log file that can be read without risk, or no such line in its first MiB."""
    from sgmon.log.args_line import parse_server_args

    log = logfile.find(inside)
    if not log.path or log.kind not in ("file", "deleted") or inside.remote(log.inner_path or log.path):
        return None
    try:
        head = _GUARD.run(log.path, lambda: files.read(log.path, _FIRST), 1.0)
    except (HungError, OSError):
        return None
    at = head.rfind(_MARK)
    end = head.find(b"\n", at)
    if at < 0 or end < 0:
        return None
    return parse_server_args(head[at:end].decode("utf-8", "replace"))
