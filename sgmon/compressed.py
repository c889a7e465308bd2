"""Compressed logs (gzip, xz, bzip2, zstd): told by their first bytes, whatever their names are, and unpacked.

What unpacks them is imported when one is opened: a Python may lack it, and most watches meet none.
"""

from __future__ import annotations

from importlib import import_module
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from io import BufferedReader

ENDINGS = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "zstd"}
#: what the longest of the marks needs
HEAD_BYTES = 6
_MARKS = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_REMEDIES = {
    "gzip": "this Python has no gzip; here: gzip -dc FILE | sgmon log -",
    "xz": "this Python has no lzma; here: xz -dc FILE | sgmon log -",
    "bzip2": "this Python has no bz2; here: bzip2 -dc FILE | sgmon log -",
    "zstd": "zstd is unpacked from Python 3.14 on; here: zstd -dc FILE | sgmon log -",
}


class NoUnpackerError(Exception):
    """This Python cannot unpack it. words: what can."""


class DamagedError(Exception):
    """It is cut or damaged; what was read before is right."""


class Unpacked:
    """The bytes that are packed in a stream."""

    def __init__(self, packed: IO[bytes], kind: str) -> None:
        """Raises NoUnpackerError."""
        try:
            self._text, self._damage = _reader(packed, kind)
        except ImportError:
            raise NoUnpackerError(_REMEDIES[kind]) from None
        self._packed = packed

    def read1(self, size: int) -> bytes:
        """At most ``size`` bytes, b"" at the end. Raises DamagedError, and OSError of the stream itself."""
        try:
            return self._text.read1(size)
        except self._damage as err:
            if isinstance(err, OSError) and err.errno is not None:
                raise
            raise DamagedError(str(err)) from err

    def close(self) -> None:
        self._text.close()
        self._packed.close()


def kind_of(head: bytes) -> str:
    """ "gzip"; "" for what is not compressed. head: the first ``HEAD_BYTES``."""
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), "")


def _reader(packed: IO[bytes], kind: str) -> tuple[BufferedReader, tuple[type[Exception], ...]]:
    """What reads the text, and what it raises at damage; an OSError with a number is of the disk."""
    reader: object
    damage: tuple[type[Exception], ...]
    if kind == "gzip":
        import gzip
        import zlib

        reader, damage = gzip.GzipFile(fileobj=packed), (OSError, EOFError, zlib.error)
    elif kind == "xz":
        import lzma

        reader, damage = lzma.LZMAFile(packed), (OSError, EOFError, lzma.LZMAError)
    elif kind == "bzip2":
        import bz2

        reader, damage = bz2.BZ2File(packed), (OSError, EOFError)
    else:
        zstd = import_module("compression.zstd")
        reader, damage = zstd.ZstdFile(packed), (OSError, EOFError, zstd.ZstdError)
    return cast("BufferedReader", reader), damage
