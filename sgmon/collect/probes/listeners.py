"""Who listens on a port: from /proc alone, without a connection."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from sgmon.model import Listener
from sgmon.proc import fds, files, net
from sgmon.text import clean, mask

_SCAN_EVERY_S = 10.0  # a full scan of /proc/*/fd costs 16-39 ms
_WILDCARDS = ("0.0.0.0", "::")


class Listeners:
    """Looks up LISTEN rows and their owners; an owner once found costs one readlink from then on."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._owners: dict[int, tuple[int, int, bool | None]] = {}  # socket inode -> pid, fd, ours
        self._scanned: dict[int, float] = {}

    def find(self, server_pid: int | None, hosts: frozenset[str], port: int, now: float) -> tuple[Listener, ...]:
        """LISTEN sockets that a connection to ``hosts``:``port`` can reach, in the server's network namespace.
        Raises OSError when the table cannot be read."""
        rows = self._rows(server_pid, port)
        found = []
        for row in rows:
            bare = row.local.rpartition(":")[0].strip("[]")
            if hosts and bare not in hosts and bare not in _WILDCARDS:
                continue
            found.append(self._listener(row, server_pid, now))
        self._owners = {inode: owner for inode, owner in self._owners.items() if inode in {r.inode for r in rows}}
        return tuple(found)

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

    def _table(self, pid: int, port: int) -> list[net.Row]:
        """Only the lines of this port are parsed: a busy host has thousands of others."""
        rows = net.parse(_listening(files.text(f"{self._root}/{pid}/net/tcp"), port))
        try:
            rows += net.parse(_listening(files.text(f"{self._root}/{pid}/net/tcp6"), port))
        except FileNotFoundError:
            pass  # IPv6 is switched off
        return rows

    def _listener(self, row: net.Row, server_pid: int | None, now: float) -> Listener:
        pid, ours = self._owner(row.inode, server_pid, now)
        return Listener(
            address=row.local,
            pid=pid,
            ours=ours,
            name="" if pid is None else self._name(pid),
            accept_queue=row.rx_queue,
        )

    def _owner(self, inode: int, server_pid: int | None, now: float) -> tuple[int | None, bool | None]:
        known = self._owners.get(inode)
        if known is not None and self._still(known[0], known[1], inode):
            return known[0], known[2]
        self._owners.pop(inode, None)
        tree = list(self._tree(server_pid)) if server_pid is not None else []
        if (found := self._holder(inode, tree)) is not None:
            self._owners[inode] = (*found, True)
            return found[0], True
        if now - self._scanned.get(inode, float("-inf")) < _SCAN_EVERY_S:
            return None, None
        self._scanned = {inode: now}
        others = [pid for pid in self._pids() if pid not in set(tree)]
        if (found := self._holder(inode, others)) is not None:
            ours = False if server_pid is not None else None
            self._owners[inode] = (*found, ours)
            return found[0], ours
        return None, None

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

    def _tree(self, pid: int) -> Iterator[int]:
        """A process and its descendants (needs CONFIG_PROC_CHILDREN; without it: the process alone)."""
        yield pid
        try:
            tasks = os.listdir(f"{self._root}/{pid}/task")
        except OSError:
            return
        for task in tasks:
            try:
                children = files.read(f"{self._root}/{pid}/task/{task}/children").split()
            except OSError:
                continue
            for child in children:
                yield from self._tree(int(child))

    def _pids(self) -> list[int]:
        return sorted((int(name) for name in os.listdir(self._root) if name.isdigit()), reverse=True)

    def _name(self, pid: int) -> str:
        try:
            words = files.read(f"{self._root}/{pid}/cmdline").rstrip(b"\0 ").replace(b"\0", b" ")
            if not words:
                words = b"[" + files.read(f"{self._root}/{pid}/comm").strip() + b"]"
        except OSError:
            return ""
        return mask(clean(words[:4096].decode("utf-8", "replace"), 120))


def _listening(table: str, port: int) -> str:
    """The heading and the LISTEN lines (state 0A) of one local port."""
    heading, _, rest = table.partition("\n")
    pattern = re.compile(rf"^ *\d+: [0-9A-F]+:{port:04X} [0-9A-F]+:0000 0A .*$", re.MULTILINE)
    return "\n".join([heading, *pattern.findall(rest)])
