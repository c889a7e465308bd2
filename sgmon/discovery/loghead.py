"""The beginning of the log, where a server prints its arguments: for one whose title hides its command line."""

from __future__ import annotations

import json

from sgmon.discovery import logfile
from sgmon.discovery.inner import REMOTE_S, Inside
from sgmon.patterns import regex
from sgmon.proc import child

_FIRST = 1 << 20  # the arguments come before the children start; they are about 19 KB long (sglang 0.5.23)
_CRI = regex(r"^\S+ (?:stdout|stderr) ([PF])\S* ")


def read(inside: Inside) -> str:
    """The first MiB of the log, without a runtime's envelope; "" without a file."""
    log = logfile.find(inside)
    if log.kind == "deleted" and log.path:  # behind the descriptor, and on a local disk as logfile has made sure
        head = inside._replace(prefix="").text(log.path, _FIRST)
    elif log.kind == "file" and log.path == inside.prefix + (log.inner_path or log.path):
        head = inside.text(log.inner_path or log.path, _FIRST)
    elif log.path:  # in the files of whoever reads the output
        head = (child.output(["head", "-c", str(_FIRST), log.path], REMOTE_S) or b"").decode("utf-8", "replace")
    else:
        return ""
    return _plain(head)


def _plain(text: str) -> str:
    """The text without the envelope of a container runtime: docker and the CRI cut a line every 16 KB."""
    if text.startswith('{"log":'):
        return "".join(_docker(line) for line in text.splitlines())
    if _CRI.match(text):
        return "".join(_cri(line) for line in text.splitlines())
    return text


def _docker(line: str) -> str:
    try:
        return str(json.loads(line)["log"])
    except (ValueError, KeyError, TypeError):
        return ""  # the last line is cut


def _cri(line: str) -> str:
    match = _CRI.match(line)
    return "" if match is None else line[match.end() :] + ("\n" if match[1] == "F" else "")
