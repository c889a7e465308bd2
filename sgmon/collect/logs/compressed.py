"""The text of a rotated log that logrotate has compressed, as a descriptor like that of any file."""

from __future__ import annotations

import os
import zlib
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from io import BufferedReader

SUFFIXES = (".gz", ".xz", ".bz2")
#: of one file; what is beyond is left out. The text stands in sgmon's memory while it is read.
MOST_BYTES = 32 << 20
_CHUNK = 1 << 18


def text_of(fd: int, path: str) -> int | None:
    """A descriptor of the text of ``fd``, with its times, so that it keeps its place among the others; None: this
    Python cannot read it. Closes ``fd``. What is damaged is read up to there."""
    status = os.fstat(fd)
    with os.fdopen(fd, "rb") as packed:
        try:
            text = _opened(packed, path)
            made = os.memfd_create("sgmon-log", os.MFD_CLOEXEC)
        except (ImportError, AttributeError, OSError):
            return None
        try:
            _copy(text, made)
        except (OSError, EOFError, ValueError, zlib.error):
            pass
        except Exception as err:  # LZMAError has no base of its own
            if type(err).__name__ != "LZMAError":
                raise
    os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
    return made


def _opened(packed: IO[bytes], path: str) -> BufferedReader:
    if path.endswith(".gz"):
        import gzip

        return cast("BufferedReader", gzip.GzipFile(fileobj=packed))
    if path.endswith(".xz"):
        import lzma

        return cast("BufferedReader", lzma.LZMAFile(packed))
    import bz2

    return cast("BufferedReader", bz2.BZ2File(packed))


def _copy(text: BufferedReader, made: int) -> None:
    left = MOST_BYTES
    while left > 0:
        data = text.read1(min(_CHUNK, left))  # ``read`` would lose what comes before damage
        if not data:
            return
        left -= len(data)
        while data:
            data = data[os.write(made, data) :]
