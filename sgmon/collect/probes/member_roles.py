"""Role and rank of each process of the tree: by its title, else by its place in the order of birth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sgmon.discovery.birth_order import Child, infer
from sgmon.discovery.process_roles import role_of
from sgmon.discovery.tree import ancestors, children_of
from sgmon.model import ESSENTIAL_ROLES, Role, Server
from sgmon.servers.family import ServerFamily, Slot
from sgmon.servers.registry import get

#: roles whose children are workers
_SPAWNERS = frozenset({Role.CONTROLLER, Role.ENGINE})


@dataclass(slots=True)
class Member:
    """One process of the tree, alive or gone. ppid is the parent it was born to (an orphan gets another one)."""

    pid: int
    ppid: int
    start_ticks: int
    argv: tuple[str, ...] = ()
    role: Role = Role.OTHER
    rank: str = ""
    rank_inferred: bool = False
    titled: bool = False  # its title was seen: role and rank are what it says
    becomes: Role = Role.OTHER


def name_all(members: Mapping[int, Member], server: Server) -> None:
    """Sets role and rank of every member from its title, its place in the tree and its place in birth order.
    Parents come before their children, since the role of a parent decides what it spawns."""
    family = get(server.family)
    below = children_of(members)
    queue = [pid for pid, member in members.items() if member.ppid not in members]
    for pid in queue:
        _name(members[pid], members, server, family)
    while queue:
        parent = members[queue.pop(0)]
        own = sorted((members[pid] for pid in below.get(parent.pid, ())), key=_birth)
        for member in own:
            _name(member, members, server, family)
        if not spawns_helpers(parent, server.pid):
            role = parent.becomes if parent.role == Role.IMPORTING else parent.role
            _infer(own, family.discovery.expected_children(role, server.args, server.version))
        queue += [member.pid for member in own]


def spawns_helpers(parent: Member, launcher: int) -> bool:
    """Whether the children of this process are helpers: true of all but the launcher, controllers and engines."""
    return parent.pid != launcher and _SPAWNERS.isdisjoint((parent.role, parent.becomes))


def worker_above(pid: int, members: Mapping[int, Member], server: Server) -> int | None:
    """The worker that a helper descends from, or the launcher when there is none between; None: neither."""
    for at in ancestors(pid, members):
        if at == server.pid or members[at].role in ESSENTIAL_ROLES:
            return at
    return None


def _birth(member: Member) -> tuple[int, int]:
    return member.start_ticks, member.pid


def _name(member: Member, members: Mapping[int, Member], server: Server, family: ServerFamily) -> None:
    if member.pid == server.pid:
        member.role, member.rank = Role.LAUNCHER, ""
        return
    if not member.argv:  # a zombie: what it was stays
        return
    role = role_of(member.argv, family)
    parent = members.get(member.ppid)
    below_worker = parent is not None and spawns_helpers(parent, server.pid)
    if below_worker and role not in (Role.RESOURCE_TRACKER, Role.COMPILER):
        role = Role.OTHER  # a fork that still carries its parent's title, a probe of a library
    if member.role == Role.WEIGHT_CACHE and role == Role.IMPORTING:
        return
    member.role = role
    member.titled = role != Role.IMPORTING
    if role == Role.WORKER:
        member.rank, member.rank_inferred, member.becomes = (
            family.discovery.rank_of(member.argv[0]),
            False,
            Role.OTHER,
        )
    elif role != Role.IMPORTING:
        member.rank, member.rank_inferred, member.becomes = "", False, Role.OTHER


def _infer(siblings: list[Member], slots: tuple[Slot, ...]) -> None:
    """``siblings`` in birth order."""
    workers = {member.pid: member for member in siblings if member.role in ESSENTIAL_ROLES}
    for pid, slot in infer([Child(m.pid, _slot(m)) for m in workers.values()], slots).items():
        member = workers[pid]
        member.rank = slot.rank
        member.rank_inferred = slot.role in (Role.WORKER, Role.WEIGHT_CACHE)
        if member.role == Role.IMPORTING:
            member.becomes = slot.role
        if slot.role == Role.WEIGHT_CACHE:
            member.role, member.becomes = Role.WEIGHT_CACHE, Role.OTHER


def _slot(member: Member) -> Slot | None:
    """What a titled child is. Weight-cache daemons never get a title and keep their place by order."""
    return Slot(member.role, member.rank) if member.titled else None
