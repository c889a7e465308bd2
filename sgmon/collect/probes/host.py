"""What one reading knows beyond single processes: sockets, mounts, locks, limits, the model's size on disk."""

from __future__ import annotations

import os
from collections.abc import Callable

from sgmon.collect.probes.model_files import ModelFiles
from sgmon.collect.probes.schedule import CALM, Schedule
from sgmon.model import OomCount, Server
from sgmon.proc import cgroups, files, locks, mounts, net, sock_diag
from sgmon.proc.cgroups import CgroupLimits
from sgmon.proc.mounts import Mount

TCP_EVERY_S = 5.0
TCP_AGAIN_S = 1.5
LIMITS_EVERY_S = 2.0
GROUPS_EVERY_S = 5.0
MODEL_EVERY_S = 30.0


class Host:
    """Tables shared by all processes of the tree, each read when it is due or asked for."""

    def __init__(self, root: str, server: Server, schedule: Schedule, now: Callable[[], float]) -> None:
        self.root = root
        self.pid = server.pid
        self.rows: dict[int, net.Row] = {}
        self.rows_t = -TCP_EVERY_S
        self.by_ends: dict[tuple[str, str], int] = {}  # (local, remote) -> inode
        self.mounts: tuple[Mount, ...] = ()
        self.limits = CgroupLimits()
        self.frozen: dict[str, bool] = {}
        self.oom: tuple[OomCount, ...] = ()
        self.model = ModelFiles(root, server)
        self._own_mounts: tuple[Mount, ...] = ()
        self._schedule = schedule
        self._now = now
        self._others: dict[int, str] = {}
        self._others_t = -TCP_EVERY_S
        self._groups: dict[int, str] = {}
        self._memory_folders: dict[str, str] = {}  # text of /proc/PID/cgroup -> folder
        self._locks: list[locks.Lock] | None = None
        self._alive: frozenset[int] = frozenset()
        self._memory_groups: set[str] = set()

    def refresh(self, pids: list[int]) -> None:
        """Once per reading. ``pids``: living members, the launcher first; any of them shows the shared tables."""
        self._locks = None
        for pid in pids[:1]:
            self.pid = pid
        self._schedule.run(("host", "tcp"), TCP_EVERY_S, self._read_rows, calm_times=CALM)
        self._schedule.run(("host", "mounts"), 30.0, self._read_mounts, calm_times=CALM)
        self._schedule.run(("host", "groups"), GROUPS_EVERY_S, self._forget_groups, calm_times=CALM)
        self._schedule.run(("host", "model"), MODEL_EVERY_S, self.model.measure, calm_times=CALM)
        died, self._alive = not self._alive.issubset(pids), frozenset(pids)
        read = self._schedule.run(("host", "limits"), LIMITS_EVERY_S, self._read_limits)
        if died and not read:  # whether it was the OOM killer is told with the news of the death
            self._read_limits()

    def now(self) -> float:
        """Watch seconds."""
        return self._now()

    def socket_words(self, inode: int) -> str:
        """A socket in words. A table is read anew for a socket it does not hold, though not at once again; "" for
        one that is in none."""
        now = self._now()
        if inode not in self.rows and inode not in self._others and now - self.rows_t >= TCP_AGAIN_S:
            self._read_rows()
        if inode in self.rows:
            return self.rows[inode].words
        if inode not in self._others and now - self._others_t >= TCP_EVERY_S:
            self._others_t = now
            self._others = {**net.udp(self.root, self.pid), **net.unix(self.root, self.pid)}
        return self._others.get(inode, "")

    def lock_holder(self, pid: int) -> int | None:
        """The holder of the lock that ``pid`` waits for."""
        if self._locks is None:
            try:
                self._locks = locks.read(self.root)
            except OSError:
                self._locks = []
        return locks.holder(self._locks, pid)

    def is_frozen(self, pid: int) -> bool:
        """Whether the process's own cgroup is frozen (asked for every few seconds, one look per group)."""
        text = self._group(pid)
        if text is None:
            return False
        if text not in self.frozen:
            self.frozen[text] = bool(cgroups.limits(cgroups.paths(text, self._own_mounts)).frozen)
        return self.frozen[text]

    def memory_group(self, pid: int) -> str:
        """Folder of the process's memory control group; "" where it is not known."""
        text = self._group(pid)
        if text is None:
            return ""
        folder = self._memory_folders.get(text)
        if folder is None:
            folder = self._memory_folders[text] = cgroups.memory_folder(cgroups.paths(text, self._own_mounts))
        return folder

    def _forget_groups(self) -> None:
        self._groups.clear()
        self._memory_folders.clear()

    def _group(self, pid: int) -> str | None:
        """/proc/PID/cgroup, which a process may change while it runs."""
        text = self._groups.get(pid)
        if text is None:
            try:
                text = self._groups[pid] = files.text(f"{self.root}/{pid}/cgroup")
            except OSError:
                return None
        return text

    def read_ahead_bytes(self, path: str) -> int | None:
        """Read-ahead of the device below ``path``: a slow disk shows no movement for one such piece."""
        mount = mounts.of_path(self.mounts, path) if path else None
        if mount is None:
            return None
        sys_root = os.path.join(os.path.dirname(self.root.rstrip("/")) or "/", "sys")
        try:
            return int(files.read(f"{sys_root}/class/bdi/{mount.device}/read_ahead_kb")) * 1024
        except (OSError, ValueError):
            return None

    def _read_rows(self) -> None:
        self.rows_t = self._now()
        self.rows = _sockets(self.root, self.pid)
        self.by_ends = {(row.local, row.remote): row.inode for row in self.rows.values()}

    def _read_mounts(self) -> None:
        for pid, name in ((self.pid, "mounts"), ("self", "_own_mounts")):
            try:
                setattr(self, name, mounts.read(self.root, pid))
            except OSError:
                continue
        self._memory_folders.clear()

    def _read_limits(self) -> None:
        self.frozen.clear()
        try:
            text = files.text(f"{self.root}/{self.pid}/cgroup")
        except OSError:
            return
        found = cgroups.limits(cgroups.paths(text, self._own_mounts))
        self.frozen[text] = bool(found.frozen)
        if found.oom_kills is None:
            kills = cgroups.host_oom_kills(self.root)
            found = CgroupLimits(found.frozen, found.throttled, kills, found.memory_max_bytes)
        self.limits = found
        self._read_oom()

    def _read_oom(self) -> None:
        """Of the control group of every process seen so far; a group that has gone keeps its last count."""
        self._memory_groups.update(filter(None, map(self.memory_group, sorted(self._alive))))
        counts = {one.path: one.kills for one in self.oom}
        counts.update(cgroups.oom_counts(sorted(self._memory_groups), self._own_mounts))
        host = cgroups.host_oom_kills(self.root)
        if host is not None:
            counts[""] = host
        self.oom = tuple(OomCount(path, kills) for path, kills in sorted(counts.items()))


def _sockets(root: str, pid: int) -> dict[int, net.Row]:
    """Socket inode -> row of the network namespace of ``pid``; {} where its tables cannot be read."""
    try:
        if sock_diag.shows(root, pid):
            return {row.inode: row for row in sock_diag.rows(sock_diag.WITH_INODE) if row.inode}
    except OSError:
        pass  # a kernel without inet_diag
    try:
        return net.table(root, pid)
    except OSError:
        return {}
