"""Role and rank of each process of the tree: by its title, else by its place in the order of birth."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sgmon.discovery import ray
from sgmon.discovery.birth_order import Child, infer
from sgmon.discovery.process_roles import role_of
from sgmon.discovery.tree import ancestors, children_of
from sgmon.model import ESSENTIAL_ROLES, Role, Server
from sgmon.servers.family import ServerFamily, Slot
from sgmon.servers.registry import get

#: roles whose children are workers
_SPAWNERS = frozenset({Role.CONTROLLER, Role.ENGINE})
#: a process that still looks like the launcher at so many looks is a worker of a version without titles, no program
#: that is about to be executed
_FORK_LOOKS = 3


class Member(Struct):
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
    fork_looks: int = 0  # how often it was seen with the launcher's command line


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
        if not spawns_helpers(parent, server):
            slots = _slots(parent, server)
            _infer(own, _below(parent, slots, family), settles=not family.discovery.titled(server.version))
            if server.args_known and slots:
                _leave_out_spare(own)
            if parent.role is Role.ENGINE and _is_alone(own, slots):
                parent.role = Role.WORKER
        queue += [member.pid for member in own]


def spawns_helpers(parent: Member, server: Server) -> bool:
    """Whether the children of this process are helpers: true of all but the launcher, controllers, engines, those
    that the family expects workers of, and the raylet of a server whose workers Ray starts."""
    if ray.is_raylet(parent.argv) and get(server.family).discovery.by_ray(server.args):
        return False
    if parent.pid == server.pid or not _SPAWNERS.isdisjoint((parent.role, parent.becomes)):
        return False
    return not _slots(parent, server)


def _slots(parent: Member, server: Server) -> tuple[Slot, ...]:
    """What the family expects this process to spawn."""
    role = parent.becomes if parent.role == Role.IMPORTING else parent.role
    return get(server.family).discovery.expected_children(role, server.args, server.version)


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
    below_worker = parent is not None and spawns_helpers(parent, server)
    if below_worker and role not in (Role.RESOURCE_TRACKER, Role.COMPILER):
        role = Role.OTHER  # a fork that still carries its parent's title, a probe of a library
    elif role is Role.OTHER and _stays_a_fork(member, members, server, family):
        role = Role.IMPORTING
    if member.role == Role.WEIGHT_CACHE and role == Role.IMPORTING:
        return
    member.role = role
    member.titled = role != Role.IMPORTING
    if role in (Role.WORKER, Role.ENGINE):
        own = family.discovery.rank_of(member.argv[0])
        member.rank = family.discovery.rank_below(parent.rank, own) if parent is not None else own
        member.rank_inferred, member.becomes = False, Role.OTHER
    elif role != Role.IMPORTING:
        member.rank, member.rank_inferred, member.becomes = "", False, Role.OTHER


def _stays_a_fork(member: Member, members: Mapping[int, Member], server: Server, family: ServerFamily) -> bool:
    """Whether it is a forked worker of a version that sets no titles: it looks like the launcher for ever."""
    launcher = members.get(server.pid)
    if not family.discovery.forks or family.discovery.titled(server.version) or launcher is None:
        return False
    member.fork_looks = member.fork_looks + 1 if member.argv == launcher.argv else 0
    return member.fork_looks >= _FORK_LOOKS


def _below(parent: Member, slots: tuple[Slot, ...], family: ServerFamily) -> tuple[Slot, ...]:
    """The slots with the ranks that they have below this parent."""
    return tuple(slot._replace(rank=family.discovery.rank_below(parent.rank, slot.rank)) for slot in slots)


def _is_alone(children: list[Member], slots: tuple[Slot, ...]) -> bool:
    """Whether an engine has the only rank and no worker process for it: then it holds the rank itself."""
    return len(slots) == 1 and not any(child.role in ESSENTIAL_ROLES for child in children)


def _infer(siblings: list[Member], slots: tuple[Slot, ...], settles: bool) -> None:
    """``siblings`` in birth order. settles: no title will ever come, so that the place decides the role as well."""
    workers = {member.pid: member for member in siblings if member.role in ESSENTIAL_ROLES}
    ranked = any(slot.rank for slot in slots)
    for pid, slot in infer([Child(m.pid, _slot(m, ranked)) for m in workers.values()], slots).items():
        member = workers[pid]
        member.rank = slot.rank
        member.rank_inferred = slot.role in (Role.WORKER, Role.WEIGHT_CACHE)
        if member.role == Role.IMPORTING:
            member.becomes = slot.role
        if slot.role == Role.WEIGHT_CACHE or (settles and member.role == Role.IMPORTING):
            member.role, member.becomes = slot.role, Role.OTHER


def _leave_out_spare(siblings: list[Member]) -> None:
    """A child that had ended before its command line was read is a worker only where one is lacking."""
    for member in siblings:
        if member.role is Role.IMPORTING and not member.argv and member.becomes is Role.OTHER:
            member.role = Role.OTHER


def _slot(member: Member, ranked: bool) -> Slot | None:
    """What a titled child is. Weight-cache daemons never get a title and keep their place by order. ranked: its
    siblings have ranks; then a worker whose title has none has not got its rank yet."""
    if not member.titled or (ranked and member.role is Role.WORKER and not member.rank):
        return None
    return Slot(member.role, member.rank)
