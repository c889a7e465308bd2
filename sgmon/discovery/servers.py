"""Every launcher of a server among the visible processes, newest first."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.discovery import tree
from sgmon.discovery.process_roles import role_of
from sgmon.model import Role
from sgmon.proc import files, stat
from sgmon.proc.guard import CallGuard, HungError
from sgmon.proc.stat import Stat
from sgmon.servers import registry
from sgmon.servers.command import is_python
from sgmon.servers.family import Launch, ServerFamily

_GUARD: CallGuard[tuple[str, ...]] = CallGuard()
#: parents that adopt orphans, or hold workers of many servers (ray): no launcher of anything
_ADOPTERS = frozenset({"systemd", "init", "tini", "docker-init", "dumb-init", "raylet", "catatonit", "s6-svscan"})
#: roles of a family's own processes that stand between its launcher and a worker
_SPAWNERS = frozenset({Role.CONTROLLER, Role.WORKER, Role.ENGINE, Role.API_SERVER, Role.IMPORTING})


_RANKS = frozenset({Role.WORKER, Role.ENGINE})


class Launcher(NamedTuple):
    """The process that starts a server."""

    stat: Stat
    argv: tuple[str, ...]
    launch: Launch
    family: ServerFamily


class Scan(NamedTuple):
    """One look at all processes. orphans: pids of processes of servers that have no launcher any more."""

    table: dict[int, Stat]
    servers: tuple[Launcher, ...]
    argvs: dict[int, tuple[str, ...]]
    orphans: tuple[int, ...] = ()


def look(root: str) -> Scan:
    """Reads stat and cmdline of every process: about 50 us each."""
    table = tree.scan(root)
    argvs: dict[int, tuple[str, ...]] = {}
    launchers: dict[int, Launcher] = {}
    titled: dict[int, ServerFamily] = {}
    for pid, seen in table.items():
        try:
            argv = _cmdline(root, pid, seen.state)
        except HungError:
            continue
        except OSError as err:
            if files.is_own_limit(err):
                raise
            continue
        if not argv:
            continue
        argvs[pid] = argv
        recognised = registry.recognise(argv)
        if recognised is not None:
            family, launch = recognised
            launchers[pid] = Launcher(seen, argv, launch, family)
            continue
        owner = registry.family_of_title(argv)
        if owner is not None:
            titled[pid] = owner
    workers = {pid: owner for pid, owner in titled.items() if owner.discovery.role_of(argvs[pid]) in _RANKS}
    _add_engines(launchers, workers, table, argvs)
    # A process that was just forked still carries its parent's command line: the topmost one is the launcher.
    tops = [one for pid, one in launchers.items() if not any(up in launchers for up in tree.ancestors(pid, table))]
    tops = [_renamed(one, workers, table) for one in tops]
    tops.sort(key=lambda one: (one.stat.start_ticks, one.stat.pid), reverse=True)
    return Scan(table, tuple(tops), argvs, _orphans(titled, launchers, table))


def _renamed(one: Launcher, workers: dict[int, ServerFamily], table: dict[int, Stat]) -> Launcher:
    """With the family whose titles its workers have: one command line may start servers of several families."""
    below = {owner.name: owner for pid, owner in workers.items() if one.stat.pid in tree.ancestors(pid, table)}
    return one if len(below) != 1 else one._replace(family=next(iter(below.values())))


def _cmdline(root: str, pid: int, state: str) -> tuple[str, ...]:
    """cmdline waits for the lock on the process's memory map, which one that hangs in the kernel may keep (as ps
    hangs on it): such processes are asked in a thread of its own."""
    if state != "D":
        return stat.cmdline(root, pid)
    return _GUARD.run((root, pid), lambda: stat.cmdline(root, pid), 0.1)


def _add_engines(
    launchers: dict[int, Launcher],
    workers: dict[int, ServerFamily],
    table: dict[int, Stat],
    argvs: dict[int, tuple[str, ...]],
) -> None:
    """Adds the Python process above workers that no known launcher is above. One that has started a launcher, or that
    carries a launch in its arguments, is a wrapper: workers below it are orphans that it has adopted."""
    starters = {up for pid in launchers for up in tree.ancestors(pid, table)}
    for pid, family in workers.items():
        above = list(tree.ancestors(pid, table))
        if any(up in launchers for up in above):
            continue
        for up in above:
            argv = argvs.get(up, ())
            role = role_of(argv, family)
            if role in _SPAWNERS:
                continue
            wraps = up in starters or any(registry.recognise(argv[at:]) for at in range(1, len(argv)))
            adopts = table[up].comm in _ADOPTERS or up == 1 or wraps
            if argv and role is Role.OTHER and not adopts and is_python(argv):
                launchers[up] = Launcher(table[up], argv, Launch("engine"), family)
            break


def _orphans(
    titled: dict[int, ServerFamily], launchers: dict[int, Launcher], table: dict[int, Stat]
) -> tuple[int, ...]:
    """Titled processes below no launcher. Their parents must be visible, and no ray: its workers have none above them
    while they serve."""
    found = []
    for pid in titled:
        above = list(tree.ancestors(pid, table))
        whole = bool(above) and table[above[-1]].ppid == 0
        if whole and not any(up in launchers or table[up].comm == "raylet" for up in above):
            found.append(pid)
    return tuple(sorted(found, key=lambda pid: (table[pid].start_ticks, pid)))
