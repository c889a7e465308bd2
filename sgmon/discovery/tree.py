"""Parents and children among the visible processes: the launcher above a pid, the members below a launcher."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct, field

from sgmon.proc import files, stat
from sgmon.proc.stat import Stat


def scan(root: str) -> dict[int, Stat]:
    """The stat of every visible process; those that end meanwhile are left out. Raises OSError where sgmon's own
    limits forbid the look: half a table would tell of processes that have ended."""
    found = {}
    for pid in stat.pids(root):
        try:
            found[pid] = stat.read(root, pid)
        except OSError as err:
            if files.is_own_limit(err):
                raise
    return found


class Born(Protocol):
    """What is known of a process here: its parent."""

    @property
    def ppid(self) -> int: ...


def ancestors(pid: int, table: Mapping[int, Born]) -> Iterable[int]:
    """Parent, grandparent ... of ``pid``; ends at a parent that is not visible."""
    seen = {pid}
    while pid in table:
        pid = table[pid].ppid
        if pid <= 0 or pid in seen or pid not in table:
            return
        seen.add(pid)
        yield pid


def children_of(table: Mapping[int, Born]) -> dict[int, list[int]]:
    """Parent -> its children in ``table``."""
    below: dict[int, list[int]] = {}
    for pid, process in table.items():
        below.setdefault(process.ppid, []).append(pid)
    return below


def descendants_of(pid: int, below: Mapping[int, list[int]]) -> list[int]:
    """All below ``pid``. below: as ``children_of`` gives it."""
    seen: dict[int, None] = {}  # in the order in which they are met
    queue = list(below.get(pid, ()))
    while queue:
        at = queue.pop()
        if at not in seen and at != pid:
            seen[at] = None
            queue += below.get(at, ())
    return list(seen)


class Members(Struct):
    """The processes that belong, or belonged, to one launcher. Kept between reads: when the launcher dies its
    children get another parent, and are found by memory only.

    ``refresh`` looks at pids it has not seen before alone, and at none where /proc lists the same names as at the
    last look, so that it costs little on a host with thousands.
    """

    root: str
    launcher: int
    start_ticks: int
    #: pid -> start_ticks; the launcher first, the others in the order in which they were found
    members: dict[int, int] = field(default_factory=dict)
    #: the name of a program whose children may be members, too, though the launcher is not above them; "": none
    spawner: str = ""
    #: pid -> start_ticks of its children that are no members; ``join`` makes them some
    spawned: dict[int, int] = field(default_factory=dict)
    #: pid -> start_ticks of what is below the launcher and belongs to another server
    strangers: dict[int, int] = field(default_factory=dict)
    _spawners: set[int] = field(default_factory=set)
    _seen: set[int] = field(default_factory=set)
    #: names below ``root`` at the last look, if nothing is left to look at among them
    _listed: list[str] = field(default_factory=list)

    def refresh(self, forget: bool = False) -> None:
        """Find new descendants. ``forget``: look at every pid again (a number may have been used anew)."""
        if not self.members:
            self.members[self.launcher] = self.start_ticks
        listed = os.listdir(self.root)
        if listed == self._listed and not forget:
            return
        present = set(stat.pids_among(listed))
        self._seen = self.members.keys() & present if forget else self._seen & present
        fresh: dict[int, Stat] = {}
        for pid in present - self._seen - self.members.keys():
            try:
                fresh[pid] = stat.read(self.root, pid)
            except OSError as err:
                if files.is_own_limit(err):
                    raise
                if not files.is_gone(err):
                    present.discard(pid)  # not read yet: looked at again
                    listed = []
        self._seen |= present
        self._listed = listed
        self._adopt(fresh)
        self._keep_spawned(fresh, present, forget)

    def join(self, pid: int) -> None:
        """Make one of ``spawned`` a member; its children are found from then on."""
        self.members[pid] = self.spawned.pop(pid)
        self._seen.clear()
        self._listed = []

    def drop(self, pid: int) -> None:
        """Forget a process that has ended."""
        self.members.pop(pid, None)

    def leave_out(self, pid: int) -> None:
        """A member that is no part of this server: neither it nor its children come back."""
        self.strangers[pid] = self.members.pop(pid)

    def _keep_spawned(self, fresh: dict[int, Stat], present: set[int], forget: bool) -> None:
        kept = set() if forget or not self.spawner else self._spawners & present
        self._spawners = kept | {pid for pid, seen in fresh.items() if self.spawner and seen.comm == self.spawner}
        known = {} if forget else self.spawned
        known.update({pid: seen.start_ticks for pid, seen in fresh.items() if seen.ppid in self._spawners})
        self.spawned = {p: ticks for p, ticks in known.items() if p in present and p not in self.members}

    def _adopt(self, fresh: dict[int, Stat]) -> None:
        found = True
        while found:
            found = False
            for pid, seen in sorted(fresh.items(), key=lambda item: (item[1].start_ticks, item[0])):
                new = pid not in self.members and self.strangers.get(pid) != seen.start_ticks
                born_after = seen.start_ticks >= self.start_ticks
                if new and seen.ppid in self.members and born_after:
                    self.members[pid] = seen.start_ticks
                    found = True
