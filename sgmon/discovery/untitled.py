"""Workers that have no title yet below a program of the user's own: an Engine in a script, a start by runpy.

While they import, for a minute on a slow disk, neither their command lines nor their parent's name a server. Their
environment does: a server's code sets variables of its own in its process before it spawns them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from sgmon.discovery import inner, tree
from sgmon.discovery.process_roles import is_spawned
from sgmon.proc.stat import Stat
from sgmon.servers import registry
from sgmon.servers.family import ServerFamily


def untitled_workers(
    root: str,
    argvs: Mapping[int, tuple[str, ...]],
    table: Mapping[int, Stat],
    launchers: Container[int],
    titled: Container[int],
) -> dict[int, ServerFamily]:
    """pid -> family of the children of multiprocessing that no launcher and no titled process is above. Reads two
    environments for each such child."""
    found = {}
    for pid, argv in argvs.items():
        if not is_spawned(argv) or any(up in launchers or up in titled for up in tree.ancestors(pid, table)):
            continue
        family = registry.family_of_own_env(_given_by_parent(root, pid, table[pid].ppid))
        if family is not None:
            found[pid] = family
    return found


def _given_by_parent(root: str, pid: int, parent: int) -> set[str]:
    """Names of the variables that the parent has set since it began. None where an environment is hidden, where a
    title has blanked the parent's, or where the parent has ended and another one has adopted the child."""
    began, given = inner.environment(root, parent), inner.environment(root, pid)
    if parent <= 1 or not began or not given:
        return set()
    return given.keys() - began.keys()
