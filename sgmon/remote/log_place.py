"""How far the log of a far machine has been read, so that the next collector goes on there."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.model import LogReading


class LogPlace:
    """Takes every reading of the log, and gives it on as one log, however many collectors have read it."""

    def __init__(self) -> None:
        self.resume: tuple[str, int] | None = None  # (identity of the file, offset of the next byte)
        self._path = ""
        self._new_collector = False

    def begin(self) -> None:
        """A new collector begins to read."""
        self._new_collector = True

    def taken(self, reading: LogReading) -> LogReading:
        """The reading; the first one of a later collector says so where it does not go on where we were."""
        if self._new_collector and reading.text:
            self._new_collector = False
            before, at = self.resume, reading.offset
            if before is not None and not reading.change and (reading.identity, at) != before:
                same = reading.identity == before[0] or not reading.identity
                reading = replace(reading, change="truncated" if same else "rotated")
        self._note(reading)
        return reading

    def _note(self, reading: LogReading) -> None:
        """An offset counts bytes: the text's own, unless it holds what could not be decoded. Then the place is where
        the text begins, which is read twice rather than lost."""
        if not reading.identity:
            return
        whole = "\ufffd" not in reading.text
        length = len(reading.text.encode("utf-8", "replace")) if whole else 0
        self.resume = (reading.identity, reading.offset + length)
