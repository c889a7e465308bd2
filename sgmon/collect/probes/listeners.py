"""Who listens on a port: from the kernel's tables alone, without a connection."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from sgmon.discovery import tree
from sgmon.model import Listener
from sgmon.proc import fds, files, net, sock_diag, stat
from sgmon.text import safe

_SCAN_EVERY_S = 10.0  # a full scan of /proc/*/fd costs 16-39 ms
WILDCARDS = ("0.0.0.0", "::")


class Listeners:
    """Looks up LISTEN rows and their owners; an owner once found costs one readlink from then on, an unknown one is
    looked for again each ``_SCAN_EVERY_S``, and at once for another server."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._owners: dict[int, tuple[int, int]] = {}  # socket inode -> pid, fd
        self._scanned: dict[tuple[int, int | None], float] = {}  # (inode, server) -> when it was looked for in vain

    def find(self, server_pid: int | None, hosts: frozenset[str], port: int, now: float) -> tuple[Listener, ...]:
        """LISTEN sockets that a connection to ``hosts``:``port`` can reach, in the server's network namespace.
        Raises OSError when the table cannot be read."""
        rows = self._rows(server_pid, port)
        found = tuple(
            self._listener(row.inode, row.local, row.rx_queue, server_pid, now)
            for row in rows
            if _reaches(row, hosts)
        )
        here = {row.inode for row in rows}
        self._owners = {inode: owner for inode, owner in self._owners.items() if inode in here}
        self._scanned = {key: t for key, t in self._scanned.items() if key[0] in here}
        return found

    def held_by(self, pid: int, hosts: frozenset[str]) -> tuple[net.Row, ...]:
        """LISTEN rows, of any port, that this very process has open and a connection to ``hosts`` can reach. Raises
        OSError when its descriptors or the table cannot be read."""
        inodes = {fds.inode(target) for target in fds.read(self._root, pid).values()}
        return tuple(row for row in self._table(pid, None) if row.inode in inodes and _reaches(row, hosts))

    def _rows(self, server_pid: int | None, port: int) -> list[net.Row]:
        """LISTEN rows of this port, from the server's own tables; from ours when there is no server (any more)."""
        own = os.getpid() if self._root == "/proc" else 1
        if server_pid is not None:
            try:
                return self._table(server_pid, port)
            except OSError as err:
                if not files.is_gone(err):
                    raise
        return self._table(own, port)

    def _table(self, pid: int, port: int | None) -> list[net.Row]:
        """By netlink where that shows this namespace, else from /proc, of which only this port's lines are parsed.
        port None: all."""
        try:
            if sock_diag.shows(self._root, pid):
                end = "" if port is None else f":{port}"
                return [row for row in sock_diag.rows(sock_diag.LISTEN) if row.local.endswith(end)]
        except OSError:
            pass  # a kernel without inet_diag
        rows = net.parse(_listening(files.text(f"{self._root}/{pid}/net/tcp"), port))
        try:
            rows += net.parse(_listening(files.text(f"{self._root}/{pid}/net/tcp6"), port))
        except FileNotFoundError:
            pass  # IPv6 is switched off
        return rows

    def find_unix(self, server_pid: int, path: str, now: float) -> tuple[Listener, ...]:
        """Listening UNIX sockets of this path. Raises OSError when the table cannot be read."""
        inodes = net.unix_listening(self._root, server_pid, path)
        return tuple(self._listener(inode, path, None, server_pid, now) for inode in inodes)

    def _listener(self, inode: int, address: str, queued: int | None, server_pid: int | None, now: float) -> Listener:
        pid = self._owner(inode, server_pid, now)
        ours = None if pid is None or server_pid is None else self._belongs(pid, server_pid)
        return Listener(address, pid, ours, "" if pid is None else self._name(pid), queued)

    def _owner(self, inode: int, server_pid: int | None, now: float) -> int | None:
        """The process that has the socket open, the server's own before others; None: none that we may see."""
        known = self._owners.pop(inode, None)
        if known is not None and self._still(*known, inode):
            self._owners[inode] = known
            return known[0]
        if known is None and now - self._scanned.get((inode, server_pid), float("-inf")) < _SCAN_EVERY_S:
            return None
        self._scanned[inode, server_pid] = now
        found = self._holder(inode, (server_pid,)) if server_pid is not None else None
        found = found or self._search(inode, server_pid)
        if found is None:
            return None
        self._owners[inode] = found
        return found[0]

    def _search(self, inode: int, server_pid: int | None) -> tuple[int, int] | None:
        """(pid, fd) of its holder among all processes, those of the server before others."""
        table = tree.scan(self._root)
        own = {pid for pid in table if server_pid is not None and _is_below(pid, server_pid, table)}
        return self._holder(inode, sorted(table, key=lambda pid: (pid not in own, -pid)))

    def _belongs(self, pid: int, server_pid: int) -> bool | None:
        """Whether ``pid`` is the server or descends from it; None: it cannot be read."""
        seen: set[int] = set()
        while pid != server_pid and pid > 0 and pid not in seen:
            seen.add(pid)
            try:
                pid = stat.read(self._root, pid).ppid
            except OSError as err:
                return False if files.is_gone(err) else None
        return pid == server_pid

    def _holder(self, inode: int, pids: Iterable[int]) -> tuple[int, int] | None:
        """(pid, fd) of the first process that has this socket open."""
        wanted = f"socket:[{inode}]"
        for pid in pids:
            try:
                for fd, target in fds.read(self._root, pid).items():
                    if target == wanted:
                        return pid, fd
            except OSError:
                continue
        return None

    def _still(self, pid: int, fd: int, inode: int) -> bool:
        try:
            return fds.link(self._root, pid, fd) == f"socket:[{inode}]"
        except OSError:
            return False

    def _name(self, pid: int) -> str:
        try:
            words = files.read(f"{self._root}/{pid}/cmdline").rstrip(b"\0 ").replace(b"\0", b" ")
            if not words:
                words = b"[" + files.read(f"{self._root}/{pid}/comm").strip() + b"]"
        except OSError:
            return ""
        return safe(words[:4096].decode("utf-8", "replace"), 120)


def _is_below(pid: int, top: int, table: dict[int, stat.Stat]) -> bool:
    return pid == top or top in tree.ancestors(pid, table)


def _reaches(row: net.Row, hosts: frozenset[str]) -> bool:
    """Whether a connection to one of ``hosts`` reaches it; no hosts: any."""
    bare = row.local.rpartition(":")[0].strip("[]")
    return not hosts or bare in hosts or bare in WILDCARDS


def _listening(table: str, port: int | None) -> str:
    """The heading and the LISTEN lines (state 0A) of one local port, or of all."""
    heading, _, rest = table.partition("\n")
    local = "[0-9A-F]{4}" if port is None else f"{port:04X}"
    pattern = re.compile(rf"^ *\d+: [0-9A-F]+:{local} [0-9A-F]+:0000 0A .*$", re.MULTILINE)
    return "\n".join([heading, *pattern.findall(rest)])
