"""Every SGLang launcher among the visible processes, newest first."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.discovery import launch, titles, tree
from sgmon.proc import stat
from sgmon.proc.guard import Guard, HungError
from sgmon.proc.stat import Stat

_GUARD: Guard[tuple[str, ...]] = Guard()
#: parents that adopt orphans, or hold workers of many servers (ray): no launcher of anything
_ADOPTERS = frozenset({"systemd", "init", "tini", "docker-init", "dumb-init", "raylet", "catatonit", "s6-svscan"})


class Found(NamedTuple):
    """One launcher. launch.form "engine": a script whose own children are SGLang's (``sglang.Engine``)."""

    stat: Stat
    argv: tuple[str, ...]
    launch: launch.Launch


class Scan(NamedTuple):
    """One look at all processes."""

    table: dict[int, Stat]
    servers: tuple[Found, ...]
    argvs: dict[int, tuple[str, ...]]


def look(root: str) -> Scan:
    """Reads stat and cmdline of every process: about 50 us each."""
    table = tree.scan(root)
    argvs: dict[int, tuple[str, ...]] = {}
    found: dict[int, Found] = {}
    workers: list[int] = []
    for pid, seen in table.items():
        try:
            argv = _cmdline(root, pid, seen.state)
        except (OSError, HungError):
            continue
        if not argv:
            continue
        argvs[pid] = argv
        started = launch.recognise(argv)
        if started is not None:
            found[pid] = Found(seen, argv, started)
        elif argv[0].startswith(("sglang::scheduler", "sgl_diffusion::scheduler")):
            workers.append(pid)
    _add_engines(found, workers, table, argvs)
    # A process that was just forked still carries its parent's command line: the topmost one is the launcher.
    tops = [f for pid, f in found.items() if not any(up in found for up in tree.ancestors(pid, table))]
    tops.sort(key=lambda f: (f.stat.start_ticks, f.stat.pid), reverse=True)
    return Scan(table, tuple(tops), argvs)


def _cmdline(root: str, pid: int, state: str) -> tuple[str, ...]:
    """cmdline waits for the lock on the process's memory map, which one that hangs in the kernel may keep (as ps
    hangs on it): such processes are asked in a thread of its own."""
    if state != "D":
        return stat.cmdline(root, pid)
    return _GUARD.run((root, pid), lambda: stat.cmdline(root, pid), 0.1)


def _add_engines(
    found: dict[int, Found], workers: list[int], table: dict[int, Stat], argvs: dict[int, tuple[str, ...]]
) -> None:
    """The Python process above schedulers that no known launcher is above."""
    for pid in workers:
        above = list(tree.ancestors(pid, table))
        if any(up in found for up in above):
            continue
        for up in above:
            argv = argvs.get(up, ())
            if not argv or titles.role_of(argv) != "other" or table[up].comm in _ADOPTERS or up == 1:
                if argv and titles.role_of(argv) in ("dp_controller", "scheduler", "importing"):
                    continue
                break
            if launch.is_python(argv):
                found[up] = Found(table[up], argv, launch.Launch("engine"))
            break
