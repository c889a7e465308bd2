"""What goes between a watch and a collector: requests as JSON lines, answers as one stream of compressed JSON lines.

An answer has ``k``, its kind. Kinds of ``sgmon.model.KINDS`` are readings: ``t`` (seconds of the watch), ``took``,
and ``r``, the reading; ``same`` instead of it where it is equal to the last of its kind.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from sgmon.json_text import as_json
from sgmon.model import Event

#: printed by a collector before its stream begins; a login shell may have printed anything before it
MARK = b"\nsgmon-collector-1\n"
HELLO, PONG, BYE = "hello", "pong", "bye"
#: kinds of which every reading counts; of the others the newest stands for those before it
EACH = frozenset({"log", "stacks", "ras", "kernel", "probe", "server"})


class Packer:
    """Lines -> bytes that can be unpacked at once."""

    def __init__(self) -> None:
        self._pack = zlib.compressobj(6, zlib.DEFLATED, 15, 9)

    def packed(self, lines: list[bytes]) -> bytes:
        data = self._pack.compress(b"\n".join(lines) + b"\n")
        return data + self._pack.flush(zlib.Z_SYNC_FLUSH)


class Unpacker:
    """Bytes as they come -> whole lines. Raises ``ValueError`` for what no collector has written."""

    def __init__(self) -> None:
        self._unpack = zlib.decompressobj()
        self._rest = b""

    def lines(self, data: bytes) -> list[bytes]:
        try:
            text = self._rest + self._unpack.decompress(data)
        except zlib.error as err:
            raise ValueError(f"the collector's stream is damaged: {err}") from None
        *whole, self._rest = text.split(b"\n")
        return whole


class EventLines:
    """Events -> lines."""

    def __init__(self) -> None:
        self._last: dict[str, bytes] = {}

    def line(self, event: Event) -> bytes:
        head: dict[str, Any] = {"k": event.kind, "t": round(event.t, 3)}
        if event.took_s is not None:
            head["took"] = round(event.took_s, 4)
        body = as_json(event.reading)
        if event.kind not in EACH and self._last.get(event.kind) == body:
            head["same"] = 1
            return msgspec.json.encode(head)
        self._last[event.kind] = body
        return msgspec.json.encode(head)[:-1] + b',"r":' + body + b"}"
