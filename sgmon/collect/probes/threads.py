"""All threads of one process: their states, and which of them wait for storage, for how long, for which file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sgmon.model import BlockedCall, ThreadWait
from sgmon.model.procs import STORAGE_WCHANS
from sgmon.proc import counters, fds, mounts, syscalls
from sgmon.proc.counters import ThreadTimes
from sgmon.proc.mounts import Mount
from sgmon.text import clean

if TYPE_CHECKING:
    from typing import TypeAlias

#: how many of them are reported: a loader of sixteen threads waits in each of them for the same mount
LIMIT = 4
Describe: TypeAlias = "Callable[[int], str]"
Peek: TypeAlias = "Callable[[int, int], bytes | None]"


class Threads:
    """What is known of the threads of one process, as of the last look."""

    def __init__(self, root: str, pid: int) -> None:
        self.states: tuple[tuple[str, int], ...] = ()
        self.stuck: list[ThreadTimes] = []
        self._root = root
        self._pid = pid
        self._known: dict[int, ThreadTimes] = {}
        #: a look at a process that has not run since would tell nothing new: each thread slept at the last one, and
        #: what it sleeps in is known
        self.is_settled = False
        self._told: dict[tuple[int, bytes], tuple[BlockedCall | None, tuple[str, ...]]] = {}

    def look(self, t: float) -> list[ThreadTimes]:
        """All threads, as ``counters.threads``."""
        seen = counters.threads(self._root, self._pid, self._known, t)
        if seen:
            self.states = counters.states(seen)
            self.stuck = sorted(filter(_waits_for_storage, seen), key=lambda thread: thread.since_t)[:LIMIT]
            self._known = {thread.tid: thread for thread in seen}
            self.is_settled = all(thread.wchan is not None for thread in seen)
        return seen

    @property
    def uninterruptible(self) -> bool:
        """One of them is in state D: it may hold the lock on the memory map."""
        return any(state == "D" for state, _ in self.states)

    def waits(
        self, t: float, rows: tuple[Mount, ...], targets: Mapping[int, str], describe: Describe, peek: Peek
    ) -> tuple[ThreadWait, ...]:
        """The threads that wait for storage. Where they are blocked is read once for each sleep. ``targets``: the
        descriptors of the process."""
        keys = {(thread.tid, thread.schedstat) for thread in self.stuck}
        self._told = {key: told for key, told in self._told.items() if key in keys}
        found = []
        for thread in self.stuck:
            call, stack = self._blocked(thread, describe, peek)
            target = call.target if call is not None else _only_remote(targets, rows)
            target = target if target.startswith("/") else ""
            mount = mounts.of_path(rows, target) if target else None
            found.append(
                ThreadWait(
                    tid=thread.tid,
                    state=thread.state,
                    wchan=thread.wchan or "",
                    asleep_s=round(t - thread.since_t, 1),
                    call=call,
                    kernel_stack=stack,
                    target=clean(target, 300),
                    mount=clean(mount.point, 200) if mount is not None else "",
                    fstype=mount.fstype if mount is not None else "",
                )
            )
        return tuple(found)

    def _blocked(
        self, thread: ThreadTimes, describe: Describe, peek: Peek
    ) -> tuple[BlockedCall | None, tuple[str, ...]]:
        key = (thread.tid, thread.schedstat)
        if key not in self._told:
            path = f"{self._pid}/task/{thread.tid}"
            self._told[key] = (self._call(path, describe, peek), self._stack(path))
        return self._told[key]

    def _call(self, path: str, describe: Describe, peek: Peek) -> BlockedCall | None:
        try:
            return syscalls.decode(syscalls.read(self._root, path), describe, peek)
        except OSError:
            return None

    def _stack(self, path: str) -> tuple[str, ...]:
        try:
            return counters.kernel_stack(self._root, path)
        except OSError:
            return ()


def _waits_for_storage(thread: ThreadTimes) -> bool:
    """It has not run between two looks, and sleeps where only a file system's answer wakes it."""
    return thread.wchan is not None and (thread.state == "D" or thread.wchan in STORAGE_WCHANS)


def _only_remote(targets: Mapping[int, str], rows: tuple[Mount, ...]) -> str:
    """The one open file, its output apart, on a mount that another machine or a user process answers for; "" for none
    or several. The call itself may be hidden (kernel.yama.ptrace_scope)."""
    paths = {target for fd, target in targets.items() if fd > 2 and _is_remote(target, rows)}
    return paths.pop() if len(paths) == 1 else ""


def _is_remote(path: str, rows: tuple[Mount, ...]) -> bool:
    if fds.kind(path) != "file":
        return False
    mount = mounts.of_path(rows, path)
    return mount is not None and mount.remote
