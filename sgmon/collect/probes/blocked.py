"""Where the main thread of a process is blocked: the kernel's function and stack, the call and its target."""

from __future__ import annotations

import os
from typing import NamedTuple

from sgmon.collect.probes.gaps import Gaps
from sgmon.collect.probes.host import Host
from sgmon.collect.probes.threads import Threads
from sgmon.model import BlockedCall, Missing
from sgmon.proc import counters, fds, syscalls
from sgmon.proc.stat import Stat
from sgmon.text import clean

_SEE_OTHERS = "run sgmon as the server's user or with sudo; in docker: --cap-add SYS_PTRACE"


class BlockedIn(NamedTuple):
    """None: not known, or not blocked."""

    wchan: str | None = None
    call: BlockedCall | None = None
    stack: tuple[str, ...] = ()


class Blocked:
    """Remembers the last look of one process: what has not run is where it was."""

    def __init__(self, host: Host, gaps: Gaps, threads: Threads, pid: int) -> None:
        self._host = host
        self._root = host.root
        self._gaps = gaps
        self._threads = threads
        self._pid = pid
        self._last = BlockedIn()
        self._key: tuple[str, bytes, float] | None = None  # of the last look
        self._nameless = 0
        self._was_named = False

    def look(self, seen: Stat, schedstat: bytes) -> BlockedIn:
        """Where the main thread is blocked. While it has not run since the last look that is where it was; only the
        words for a socket may change, with the socket table."""
        key = (seen.state, schedstat, self._host.rows_t)
        if schedstat and seen.state in ("S", "D") and key == self._key:
            return self._last
        stack: tuple[str, ...] = ()
        if seen.state == "D":
            stack = self._gaps.read("stack", lambda: counters.kernel_stack(self._root, self._pid)) or ()
        else:
            self._gaps.clear("stack")
        hidden_before = self._nameless
        self._last = BlockedIn(self._wchan(seen), self._call(seen), stack)
        # It may have run between the two reads: a look that found no call is no answer to keep.
        known = self._nameless == hidden_before and self._last.call is not None
        self._key = key if known else None
        return self._last

    def describe(self, fd: int) -> str:
        """A descriptor in words, read now: it may be younger than the last look at all of them."""
        try:
            if fd == syscalls.AT_FDCWD:
                return clean(os.readlink(f"{self._root}/{self._pid}/cwd"), 300)
            target = fds.link(self._root, self._pid, fd)
        except OSError:
            return ""
        number = fds.inode(target) if target else None
        words = self._host.socket_words(number) if number is not None else ""
        return clean(words or target or "", 300)

    def peek(self, address: int, size: int) -> bytes | None:
        """Memory of the process; None where it cannot be read, or the read might hang."""
        if self._threads.uninterruptible:
            return None
        return syscalls.memory(self._root, self._pid, address, size)

    def _wchan(self, seen: Stat) -> str | None:
        """ "" while running. Asleep and nameless twice in a row: hidden (no error is given for that), unless it was
        named before: then it was about to run."""
        found = self._gaps.read("wchan", lambda: counters.wchan(self._root, self._pid))
        if found or found is None or seen.state not in ("S", "D", "T", "t"):
            self._nameless, self._was_named = 0, self._was_named or bool(found)
            return found
        self._nameless += 1
        if self._nameless > 1 and not self._was_named:
            self._gaps.put(Missing("wchan", "hidden: it sleeps, but the kernel does not say where", _SEE_OTHERS))
        return None

    def _call(self, seen: Stat) -> BlockedCall | None:
        raw = self._gaps.read("syscall", lambda: syscalls.read(self._root, self._pid))
        if raw is None or seen.state in ("Z", "X"):
            return None
        return syscalls.decode(raw, self.describe, self.peek)
