"""Every launcher of a server among the visible processes, newest first."""

from __future__ import annotations

import os
from typing import NamedTuple

from sgmon.discovery import tree
from sgmon.discovery.process_roles import is_tracker, role_of
from sgmon.discovery.untitled import untitled_workers
from sgmon.model import Role
from sgmon.proc import files, stat
from sgmon.proc.guard import CallGuard, HungError
from sgmon.proc.stat import Stat
from sgmon.servers import registry
from sgmon.servers.command import is_python
from sgmon.servers.family import Launch, ServerFamily

_GUARD: CallGuard[tuple[str, ...]] = CallGuard()
#: parents that adopt orphans, or hold workers of many servers (ray): no launcher of anything
_ADOPTERS = frozenset(
    {"systemd", "init", "tini", "docker-init", "dumb-init", "raylet", "catatonit", "s6-svscan", "supervisord"}
)
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
    spawned = untitled_workers(root, argvs, table, launchers, titled)
    hidden = _add_engines(root, launchers, {**titled, **spawned}, table, argvs)
    tops = [one for pid, one in launchers.items() if not _within(launchers, pid, table)]
    tops = [_renamed(one, workers, table) for one in tops]
    tops.sort(key=lambda one: (one.stat.start_ticks, one.stat.pid), reverse=True)
    left = {pid: owner for pid, owner in titled.items() if pid not in hidden}
    return Scan(table, tuple(tops), argvs, _orphans(left, launchers, table))


def _within(launchers: dict[int, Launcher], pid: int, table: dict[int, Stat]) -> bool:
    """Whether a launcher is of one above it: a process that was just forked still carries its parent's command line.
    With other arguments it is a server of its own: a shell that started it became the other one by ``exec``."""
    own = launchers[pid].launch
    return any(not is_another(own, launchers[up].launch) for up in tree.ancestors(pid, table) if up in launchers)


def is_another(below: Launch | None, above: Launch) -> bool:
    """Whether a launch below another one starts a server of its own. One without arguments is a title: it may be
    the same server."""
    tails = (above.tail, below.tail if below is not None else None)
    return None not in tails and tails[0] != tails[1]


def launch_of(argv: tuple[str, ...]) -> Launch | None:
    """The launch that a command line is, of any family; None for another program."""
    found = registry.recognise(argv)
    return found[1] if found is not None else None


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
    root: str,
    launchers: dict[int, Launcher],
    titled: dict[int, ServerFamily],
    table: dict[int, Stat],
    argvs: dict[int, tuple[str, ...]],
) -> set[int]:
    """Adds the Python process, whatever its title, above titled processes that no known launcher is above. Returns
    the pids of those whose parent may be a Python process or not: nobody can say whether their server is gone.

    A parent that has started a launcher, or that carries a launch in its arguments, is a wrapper: what is titled
    below it are orphans that it has adopted."""
    starters = {up for pid in launchers for up in tree.ancestors(pid, table)}
    trackers = {table[pid].ppid for pid, argv in argvs.items() if is_tracker(argv)}
    hidden = set()
    for pid, family in titled.items():
        above = list(tree.ancestors(pid, table))
        if any(up in launchers for up in above):
            continue
        for up in above:
            argv = argvs.get(up, ())
            role = role_of(argv, family)
            if role in _SPAWNERS:
                continue
            wraps = up in starters or any(registry.recognise(argv[at:]) for at in range(1, len(argv)))
            if not argv or role is not Role.OTHER or wraps or up == 1 or table[up].comm in _ADOPTERS:
                break
            spawns = up in trackers or _runs_python(root, up, argv)
            if spawns:
                launchers[up] = Launcher(table[up], argv, Launch("engine"), family)
            elif spawns is None:
                hidden.add(pid)
            break
    return hidden


def _runs_python(root: str, pid: int, argv: tuple[str, ...]) -> bool | None:
    """Whether a process is a Python interpreter, also under a title of its own. None: its program may not be read."""
    if is_python(argv):
        return True
    try:
        return is_python((os.readlink(f"{root}/{pid}/exe"),))
    except OSError:
        return None


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
