"""Follows the server's log: a file, a command that prints it (docker logs, journalctl, kubectl logs), or stdin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sgmon.collect.logs.file import FileLog
from sgmon.collect.probes.base import Watched
from sgmon.model import LogReading

if TYPE_CHECKING:
    from sgmon.collect.logs.command import CommandLog
    from sgmon.collect.logs.stream import InputLog

#: how much rarer a log without new text is read while all is calm: each half a second
CALM = 2.5


class Follower(Protocol):
    """One log. ``read`` never waits; ``busy``: there is more to read now."""

    interval_s: float
    busy: bool

    def read(self) -> LogReading | None: ...

    def close(self) -> None: ...


class LogProbe:
    """New text of the log, wherever the settings or the server say that it is."""

    name = "log"
    kind = "log"
    deadline_s = 3.0

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._file = FileLog(watched)
        self._stream: CommandLog | InputLog | None = None
        self._command: tuple[str, ...] = ()
        self._pace = max(1.0, watched.settings.interval_s)  # who asks for less is read less often
        self.interval_s = self._file.interval_s * self._pace
        self.busy = False

    def read(self) -> LogReading | None:
        follower = self._choose()
        if self._watched.log_waits is not None and self._watched.log_waits.is_set():
            self.busy = False
            return None
        came = False
        try:
            reading = follower.read()
            came = reading is not None
            return reading
        finally:
            self.busy, self.interval_s = follower.busy, follower.interval_s * self._pace
            if self._watched.calm and not came:
                self.interval_s *= CALM

    def close(self) -> None:
        self._file.close()
        if self._stream is not None:
            self._stream.close()

    def _choose(self) -> Follower:
        settings, server = self._watched.settings, self._watched.server
        if settings.log == "-" and settings.log_fd is not None:
            if self._stream is None:
                from sgmon.collect.logs.stream import InputLog

                self._stream = InputLog(settings.log_fd, self._watched.clock)
            return self._stream
        found = server.log_command if server is not None and not settings.log else ()
        command = settings.log_command or found
        if command != self._command:
            if self._stream is not None:
                self._stream.close()
            self._command, self._stream = command, None
            if command:
                from sgmon.collect.logs.command import CommandLog

                self._stream = CommandLog(command, self._watched.clock)
        return self._stream or self._file
