"""Compressed logs (.gz, .xz, .bz2, .zst), told by their first bytes whatever their names are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from importlib import import_module
from typing import Protocol, cast


class Bytes(Protocol):
    """What a log is read from."""

    def read1(self, size: int = -1, /) -> bytes: ...

    def close(self) -> None: ...


class NoUnpackerError(Exception):
    """There is nothing here that unpacks it. words: by what it can be done."""


#: what reading a cut or damaged one raises
DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)
_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
ENDINGS = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "zstd"}


def kind_of(head: bytes) -> str:
    """ "gzip"; "" for what is not compressed."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def unpacked(stream: io.BufferedReader) -> Bytes:
    """The stream, or what is packed in it. Raises NoUnpackerError."""
    kind = kind_of(stream.peek(8)[:8])
    if kind == "gzip":
        return gzip.GzipFile(fileobj=stream)
    if kind == "xz":
        return cast(Bytes, io.BufferedReader(lzma.LZMAFile(stream)))
    if kind == "bzip2":
        return cast(Bytes, io.BufferedReader(bz2.BZ2File(stream)))
    return _zstd(stream) if kind == "zstd" else stream


def _zstd(stream: io.BufferedReader) -> Bytes:
    """Python has it from 3.14 on."""
    try:
        return cast(Bytes, import_module("compression.zstd").ZstdFile(stream))
    except ImportError:
        raise NoUnpackerError("zstd is unpacked from Python 3.14 on; here: zstd -dc FILE | sgmon log -") from None
