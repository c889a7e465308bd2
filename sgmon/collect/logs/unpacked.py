"""The text of a rotated log that logrotate has compressed, as a descriptor like that of any file."""

from __future__ import annotations

import os

from sgmon.compressed import HEAD_BYTES, DamagedError, NoUnpackerError, Unpacked, kind_of

#: of one file; what is beyond is left out. The text stands in sgmon's memory while it is read.
MOST_BYTES = 32 << 20
_CHUNK = 1 << 18


def text_of(fd: int) -> int | None:
    """``fd``, or a descriptor of the text that is packed in it, with its times, so that it keeps its place among the
    others; then ``fd`` is closed. What is damaged is read up to there, what this Python cannot unpack is empty. None:
    it cannot be read, or there is no memory file to put it in."""
    try:
        kind = kind_of(os.pread(fd, HEAD_BYTES, 0))
        if not kind:
            return fd
        made = os.memfd_create("sgmon-log", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        os.close(fd)
        return None
    status = os.fstat(fd)
    with os.fdopen(fd, "rb") as packed:
        try:
            _copy(Unpacked(packed, kind), made)
        except (DamagedError, NoUnpackerError, OSError):
            pass
    os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
    return made


def _copy(text: Unpacked, made: int) -> None:
    left = MOST_BYTES
    while left > 0:
        data = text.read1(min(_CHUNK, left))  # ``read`` would lose what comes before damage
        if not data:
            return
        left -= len(data)
        while data:
            data = data[os.write(made, data) :]
