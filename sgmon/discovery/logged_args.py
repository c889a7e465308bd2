"""The arguments from the ``server_args=`` line of the log, for a server whose title hides its command line."""

from __future__ import annotations

from sgmon.discovery import logfile
from sgmon.discovery.inner import Inside
from sgmon.model import ServerArgs

_MARK = "server_args="
_FIRST = 1 << 20  # the line comes before the children start; it is about 19 KB long (0.5.23)


def find(inside: Inside) -> ServerArgs | None:
    """None: no log file, or no such line in its first MiB."""
    from sgmon.discovery.args_line import parse_server_args

    log = logfile.find(inside)
    if log.kind == "file":
        head = inside.text(log.inner_path or log.path, _FIRST)
    elif log.path:  # deleted: behind the descriptor, and on a local disk as logfile has made sure
        head = inside._replace(prefix="").text(log.path, _FIRST)
    else:
        return None
    at = head.rfind(_MARK)
    end = head.find("\n", at)
    return parse_server_args(head[at:end]) if 0 <= at < end else None
