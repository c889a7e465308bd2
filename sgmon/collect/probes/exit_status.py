"""How the processes of the tree ended: a pidfd is opened when a process is first seen, and asked when it is gone."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Callable

from msgspec.structs import replace

from sgmon.model import Process
from sgmon.proc import exits
from sgmon.proc.exits import End
from sgmon.proc.stat import Stat

_UNKNOWN = End(source="exit status unknown: not our child, and this kernel (before 6.15) does not tell")


class _ExitTimes:
    """When each pidfd told of the end of its process: a thread waits for all of them. Two that end within a
    millisecond have the same time; a process may need seconds to end after it was killed (a GPU's memory)."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.times: dict[int, float] = {}
        self._now = now
        self._epoll = select.epoll()
        self._end, self._ending = os.pipe()  # the thread ends when its other end is closed
        self._epoll.register(self._end, select.EPOLLIN)
        threading.Thread(target=self._wait, name="exits", daemon=True).start()

    def add(self, fd: int) -> None:
        self._epoll.register(fd, select.EPOLLIN)

    def close(self) -> None:
        """The thread ends by itself; a descriptor that is closed leaves the epoll on its own."""
        ending, self._ending = self._ending, -1
        if ending >= 0:
            os.close(ending)

    def _wait(self) -> None:
        while True:
            ended = self._epoll.poll()
            if any(fd == self._end for fd, _ in ended):
                break
            t = round(self._now(), 3)  # as a recording keeps it
            for fd, _ in ended:
                self.times[fd] = t
                with contextlib.suppress(OSError):  # closed since
                    self._epoll.unregister(fd)
        self._epoll.close()
        os.close(self._end)


class ExitStatuses:
    """One descriptor per watched process. ``live``: off for a fake /proc, whose pids are not this machine's.

    now: the time in watch seconds.
    """

    def __init__(self, live: bool, now: Callable[[], float]) -> None:
        self._live = live
        self._fds: dict[int, int] = {}
        self._times = _ExitTimes(now) if live else None

    def watch(self, pid: int) -> None:
        if self._live and pid not in self._fds:
            fd = exits.open_pidfd(pid)
            if fd is not None:
                self._fds[pid] = fd
                if self._times is not None:
                    self._times.add(fd)

    def exit_t(self, pid: int) -> float | None:
        """When the process ended, in watch seconds; None: its pidfd has not told."""
        fd = self._fds.get(pid)
        return None if self._times is None or fd is None else self._times.times.get(fd)

    def lives_hidden(self, pid: int) -> bool:
        """Whether a process that /proc no longer shows is alive all the same (hidepid)."""
        if not self._live:
            return False
        fd = self._fds.get(pid)
        return not exits.has_ended(fd) if fd is not None else exits.exists(pid)

    def end(self, pid: int, zombie: Stat | None = None, visible: bool = False) -> End:
        """The exit status by pidfd, else by the zombie's stat field 52. 0 there is also shown to those who may not
        see it; ``visible`` says that we may."""
        fd = self._fds.get(pid)
        reported = exits.end_of(fd) if fd is not None else None
        if reported is not None:
            return reported
        if zombie is not None and (zombie.exit_status or visible):
            return exits.from_status(zombie.exit_status, "stat of the zombie")
        if zombie is not None:
            return End(source="a zombie, whose exit status is hidden from this user")
        return _UNKNOWN

    def close(self) -> None:
        if self._times is not None:
            self._times.close()
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()


def ended(last: Process, end: End, zombie: Stat | None = None) -> Process:
    """The last reading of a process, marked as gone."""
    return replace(
        last,
        state="Z" if zombie is not None else "X",
        gone=True,
        exit_code=end.code,
        exit_signal=end.signal,
        exit_source=end.source,
        wchan=None,
        call=None,
        compilers=(),
        missing=(),
    )
