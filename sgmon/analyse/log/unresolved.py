"""A name that a rank cannot resolve while it looks for the others: what torch's rendezvous says of it."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.model.log import Unresolved
from sgmon.patterns import regex
from sgmon.text import safe

#: of torch/csrc/distributed/c10d/socket.cpp
HINT = "cannot be retrieved (gai error"
_LINE = regex(
    r"The IPv(?P<family>[46]) network addresses of \((?P<host>[^,()\s]+), (?P<port>\d+)\) cannot be retrieved "
    r"\(gai error: (?P<code>-?\d+) - (?P<words>[^)]+)\)"
)
#: EAI_ADDRFAMILY: the name has addresses, of the other family alone
_OTHER_FAMILY = "-9"


def unresolved_in(body: str, line: int, before: Unresolved | None) -> Unresolved | None:
    """With this line counted; ``before`` when it says nothing of the kind.

    The line comes at each attempt. One alone is no failure: a name that has IPv4 addresses only may lead to one as
    well, and is then reached by those.
    """
    match = _LINE.search(body) if HINT in body else None
    if match is None or match["code"] == _OTHER_FAMILY:
        return before
    host, port = safe(match["host"], 120), int(match["port"])
    if before is not None and (before.host, before.port) == (host, port):
        return replace(before, times=before.times + 1)
    return Unresolved(host, port, safe(match["words"], 80), line)
