"""Follows a log file: the one that its writer really has open, not only the path, through every rotation."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from sgmon.collect.logs import rotated
from sgmon.collect.logs.earlier import History
from sgmon.collect.logs.opening import identity_of, is_binary, new_decoder, open_log
from sgmon.collect.logs.pace import POLL_S, Pace
from sgmon.collect.logs.rotated import Rotated
from sgmon.collect.logs.writer_files import writer_files, writer_of, writer_offset
from sgmon.collect.probes.base import ProbeError, Watched
from sgmon.model import LogReading, Server

ROUND_BYTES = 256 << 10
_IDLE_S = 0.2
_LOOK_S = 1.0  # how often rotation and deletion are looked for while the file is quiet
_FAILING_S = 5.0
_TAIL_KEPT_BYTES = 64
_SNIFF_BYTES = 64 << 10

_NOT_A_FILE = {
    "pipe": "the log goes into a pipe, which sgmon must not read: give what prints it with --log-command, or the "
    "file that tee writes with --log",
    "pty": "the log goes to a terminal, which cannot be read from outside: start the server with `sgmon run`, or "
    "send its output through tee and give the file with --log",
    "socket": "the log goes to a socket: give what prints it with --log-command 'journalctl -f ...'",
    "null": "the log goes to /dev/null: it is lost; restart the server with its output in a file",
}


class _Open(Struct):
    """The file that is being followed. offset: the next byte to read."""

    fd: int
    path: str
    identity: str
    offset: int
    decoder: codecs.IncrementalDecoder
    tail: bytes = b""  # the last bytes before offset: they tell a rewritten file from one that grew
    kind: str = "file"
    old: bool = False  # a rotation has renamed it: newer ones follow
    sniffed: bool = False
    more: bool = False  # the last round did not reach the end
    earlier: int = 0  # so many bytes were written before the server began
    caught_up: bool = False  # what came before was there when we came, and is as old as the file's mtime says


class FileLog:
    """New text of the file. ``busy`` while there is more to read."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._root = Path(watched.settings.proc_root)
        self._most_bytes = watched.settings.log_limit_bytes
        self._resume = watched.settings.log_resume
        self._file: _Open | None = None
        self._told: tuple[str, str, str] = ("", "", "")  # path, change and note that were reported last
        self._looked_t = float("-inf")
        self._server: tuple[int, int] | None = None
        self._pace = Pace()
        self._history = History()
        self.interval_s = _IDLE_S
        self.busy = False

    def close(self) -> None:
        self._drop()

    @property
    def _epoch(self) -> float:
        """Now, by a clock that is never set."""
        return self._watched.clock.epoch + self._watched.clock.now()

    def read(self) -> LogReading | None:
        self.busy = False
        self.interval_s = _IDLE_S
        server = self._watched.server
        path = self._watched.settings.log or (server.log_path if server else "")
        if not path:
            return self._without_file(server)
        restarted = self._restarted(server)
        if self._file is not None and (restarted or self._file.path != path):
            self._drop()
        try:
            if self._file is None:
                change = "rotated" if restarted else ""
                return self._begin(path, server, change, lambda: _first(path, server, self._most_bytes))
            return self._follow(self._file, server)
        except OSError as err:  # the disk, or the machine that answers for it
            file = self._file
            if file is not None:  # where it can be read again, it goes on from here
                self._resume = (file.identity, file.offset - len(file.decoder.getstate()[0]))
            self._drop()
            self.busy = False
            return self._cannot(path, "unreadable", f"cannot be read: {err.strerror}")

    def _restarted(self, server: Server | None) -> bool:
        """Another server than before: it is read from the start, for its first lines may be read already."""
        if server is None:
            return False
        before, self._server = self._server, server.key
        return before is not None and before != self._server

    def _without_file(self, server: Server | None) -> LogReading | None:
        """No path: say once what the log is instead of a file."""
        self._drop()
        if server is None or not server.log_kind:
            return None
        gap = next((gap for gap in server.missing if gap.signal == "log"), None)
        note = _NOT_A_FILE.get(server.log_kind, "the server's log was not found: give it with --log")
        if gap is not None:
            note = f"{gap.why}. {gap.remedy}"
        return self._tell(LogReading(path="", kind=server.log_kind, change="unreadable", note=note))

    def _begin(
        self, path: str, server: Server | None, change: str, older: Callable[[], Rotated | None]
    ) -> LogReading | None:
        """Open the file, or the ``older`` one that a rotation has left. The first reading comes at once, so that an
        empty log is known to be empty."""
        old = rotated.opened(older)
        fd, note, kind = (old, "", "file") if old is not None else open_log(path)
        if old is None and fd is not None and (old := rotated.opened(older)) is not None:
            os.close(fd)  # it was rotated just now
            fd = old
        writer = None if old is not None or self._watched.settings.log else writer_of(self._root, path, fd, server)
        if writer is not None:
            if fd is not None:
                os.close(fd)
            fd, note, kind = open_log(str(writer))
        if fd is None:
            return self._cannot(path, kind, note)
        status = os.fstat(fd)
        kind = "deleted" if status.st_nlink == 0 and old is None else "file"
        came_back = self._told[1] in ("missing", "unreadable")
        self._told = ("", "", "")
        self._looked_t = self._watched.clock.now()
        self._file = file = _Open(fd, path, identity_of(status), 0, new_decoder(), kind=kind, old=old is not None)
        change = change or ("deleted" if kind == "deleted" else "appeared" if came_back else "")
        if server is not None and not self._watched.settings.log and old is None:
            file.earlier = self._history.before(server, self._root, status, self._epoch)
        if self._resumes(file, status.st_size):
            change = "appeared" if came_back else ""
        elif status.st_size > self._most_bytes:
            self._skip(file, status.st_size - self._most_bytes)
            change = "skipped"
        return self._follow(file, server, change, first=True)

    def _resumes(self, file: _Open, size: int) -> bool:
        """Whether an earlier collector has read the file up to somewhere: there it goes on."""
        resume, self._resume = self._resume, None
        if resume is None or resume[0] != file.identity or resume[1] > size:
            return False
        file.offset = resume[1]
        return True

    def _skip(self, file: _Open, offset: int) -> None:
        """Begin at the first whole line after ``offset``."""
        data = os.pread(file.fd, ROUND_BYTES, offset)
        file.offset = offset + data.find(b"\n") + 1

    def _cannot(self, path: str, kind: str, note: str) -> LogReading | None:
        self.interval_s = _LOOK_S
        if kind == "missing":
            return self._tell(LogReading(path=path, change="missing", note=note))
        if kind in _NOT_A_FILE:
            return self._tell(LogReading(path=path, kind=kind, change="unreadable", note=_NOT_A_FILE[kind]))
        if self._watched.settings.log:
            self.interval_s = _FAILING_S
            raise ProbeError(f"{path}: {note}", "give a readable text file with --log")
        return self._tell(LogReading(path=path, change="unreadable", note=note))

    def _tell(self, reading: LogReading) -> LogReading | None:
        """A state is told once."""
        told = (reading.path, reading.change, reading.note)
        if told == self._told:
            return None
        self._told = told
        return reading

    def _follow(self, file: _Open, server: Server | None, change: str = "", first: bool = False) -> LogReading | None:
        """The next piece of text; when there is none, whether the file is still the right one."""
        status = os.fstat(file.fd)
        gathers = file.caught_up and not (file.more or file.old) and status.st_size > file.offset
        if gathers and self._pace.waits(self._watched.clock.now(), status.st_size):
            self.interval_s = POLL_S
            return None
        if status.st_size < file.offset or self._rewritten(file, status.st_size):
            change = "truncated"
            file.offset, file.tail, file.decoder, file.earlier = 0, b"", new_decoder(), 0
            if status.st_size > self._most_bytes:
                self._skip(file, status.st_size - self._most_bytes)
        most = min(ROUND_BYTES, file.earlier - file.offset) if file.offset < file.earlier else ROUND_BYTES
        data = os.pread(file.fd, most, file.offset) if status.st_size > file.offset else b""
        if data and not file.sniffed:
            file.sniffed = True
            if is_binary(data[:_SNIFF_BYTES]):
                return self._binary(file, change)
        if data or change or first:
            return self._piece(file, data, status, change, server)
        return self._look(file, server)

    def _piece(
        self, file: _Open, data: bytes, status: os.stat_result, change: str, server: Server | None
    ) -> LogReading:
        start = file.offset - len(file.decoder.getstate()[0])
        text = file.decoder.decode(data)
        file.offset += len(data)
        file.tail = (file.tail + data)[-_TAIL_KEPT_BYTES:]
        ends_earlier = bool(data) and file.offset == file.earlier
        file.more = len(data) == ROUND_BYTES or (ends_earlier and status.st_size > file.offset)
        self._history.add(self._epoch, file.identity, file.offset)
        self.busy = file.more or file.old
        age_s = None if file.caught_up else self._age_s(status)
        file.caught_up = file.caught_up or not self.busy
        return LogReading(
            path=file.path,
            identity=file.identity,
            offset=start,
            text=text,
            size=status.st_size,
            kind=file.kind,
            change=change,
            age_s=age_s,
            writer_offset=writer_offset(self._root, server, file.identity),
            note=_DELETED if change == "deleted" else "",
            ends_earlier=ends_earlier,
        )

    def _age_s(self, status: os.stat_result) -> float | None:
        """Seconds since the last byte was written, by the file's mtime. Only for text from before the watch: the
        clock of a file server may differ from ours, and text that comes while we look is known to be new."""
        age = self._watched.clock.epoch + self._watched.clock.now() - status.st_mtime
        return round(age, 1) if age >= 1.0 else None

    def _rewritten(self, file: _Open, size: int) -> bool:
        """Truncated and grown past our offset between two looks: before the offset stands what was not read."""
        if size == file.offset or not file.tail:
            return False
        return os.pread(file.fd, len(file.tail), file.offset - len(file.tail)) != file.tail

    def _binary(self, file: _Open, change: str) -> LogReading | None:
        path = file.path
        self._drop()
        self.interval_s = _FAILING_S
        if self._watched.settings.log:
            raise ProbeError(f"{path} is not a text file", "give the server's log with --log")
        note = "not a text file: it holds NUL bytes or no readable text"
        return self._tell(LogReading(path=path, change="unreadable", note=note))

    def _look(self, file: _Open, server: Server | None) -> LogReading | None:
        """Everything is read: was the file renamed, deleted or replaced?"""
        now = self._watched.clock.now()
        if now - self._looked_t < _LOOK_S and not file.old:
            return None
        self._looked_t = now
        try:
            there = identity_of(os.stat(file.path))
        except (FileNotFoundError, NotADirectoryError):
            there = ""
        writers = [identity for _, identity in writer_files(self._root, server)]
        if there == file.identity or file.identity in writers:
            if not there and os.fstat(file.fd).st_nlink == 0 and file.kind != "deleted":
                file.kind = "deleted"
                return self._piece(file, b"", os.fstat(file.fd), "deleted", server)
            return None  # renamed, but the writer goes on in the old file: so do we
        if there:
            status = os.fstat(file.fd)
            if status.st_size > file.offset:  # written between the last look and the rotation
                self.busy = True
                return None
            self._drop()
            return self._begin(file.path, server, "rotated", lambda: rotated.after(file.path, status))
        if file.kind != "deleted":
            self._drop()
            return self._tell(LogReading(path=file.path, change="missing", note="the file is gone"))
        return None

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):  # a file system whose daemon has died refuses even that
                os.close(file.fd)


def _first(path: str, server: Server | None, most_bytes: int) -> Rotated | None:
    """Where to begin: the oldest rotated file that has lines of this server; None for the log itself."""
    if server is None or server.started_epoch is None:
        return None
    older = rotated.since(path, server.started_epoch, most_bytes)
    return older[0] if older else None


_DELETED = "the log was deleted but the server still writes it: it will be lost when the server ends"
