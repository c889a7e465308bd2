"""Who is who in the tree: roles, ranks by title or birth order, compilers under the scheduler that started them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sgmon.discovery import ranks, titles
from sgmon.discovery.ranks import Child, Slot
from sgmon.model import Server

#: roles that are read deeply and stay in the reading when they have ended
WORKERS = frozenset(
    {"launcher", "scheduler", "detokenizer", "dp_controller", "tokenizer", "importing", "weight_cache"}
)


@dataclass(slots=True)
class Member:
    """One process of the tree, alive or gone. ppid is the parent it was born to (an orphan gets another one)."""

    pid: int
    ppid: int
    start_ticks: int
    argv: tuple[str, ...] = ()
    role: str = ""
    rank: str = ""
    rank_inferred: bool = False
    titled: bool = False  # its title was seen: role and rank are what it says
    becomes: str = ""


def name_all(members: Mapping[int, Member], server: Server) -> None:
    """Sets role and rank of every member from its title, its place in the tree and its place in birth order.
    Parents come before their children, for what a parent is decides what it bears."""
    below = children(members.values())
    queue = [pid for pid, member in members.items() if member.ppid not in members]
    for pid in queue:
        _name(members[pid], members, server)
    while queue:
        parent = members[queue.pop(0)]
        own = sorted((members[pid] for pid in below.get(parent.pid, ())), key=_birth)
        for member in own:
            _name(member, members, server)
        if parent.pid == server.pid:
            _infer(own, ranks.of_launcher(server.args, server.version))
        elif "dp_controller" in (parent.role, parent.becomes):
            _infer(own, ranks.of_controller(server.args, server.version))
        queue += [member.pid for member in own]


def bears_helpers(parent: Member, launcher: int) -> bool:
    """Whether the children of this process are helpers: true of all but the launcher and the DP controller."""
    return parent.pid != launcher and "dp_controller" not in (parent.role, parent.becomes)


def worker_above(pid: int, members: Mapping[int, Member], server: Server) -> int | None:
    """The scheduler (or other worker) that a helper descends from; None: from the launcher itself."""
    seen = set()
    at = members[pid].ppid
    while at in members and at != server.pid and at not in seen:
        seen.add(at)
        if members[at].role in WORKERS:
            return at
        at = members[at].ppid
    return server.pid if at == server.pid else None


def children(members: Iterable[Member]) -> dict[int, list[int]]:
    """Parent -> its children among ``members``."""
    found: dict[int, list[int]] = {}
    for member in members:
        found.setdefault(member.ppid, []).append(member.pid)
    return found


def descendants(pid: int, below: Mapping[int, list[int]]) -> list[int]:
    """All under ``pid``, by ``children``'s answer."""
    found: list[int] = []
    queue = list(below.get(pid, ()))
    while queue:
        at = queue.pop()
        if at not in found and at != pid:
            found.append(at)
            queue += below.get(at, ())
    return found


def _birth(member: Member) -> tuple[int, int]:
    return member.start_ticks, member.pid


def _name(member: Member, members: Mapping[int, Member], server: Server) -> None:
    if member.pid == server.pid:
        member.role, member.rank = "launcher", ""
        return
    if not member.argv:  # a zombie: what it was stays
        member.role = member.role or "other"
        return
    role = titles.role_of(member.argv)
    parent = members.get(member.ppid)
    below_worker = parent is not None and bears_helpers(parent, server.pid)
    if below_worker and role not in ("resource_tracker", "compiler"):
        role = "other"  # a fork that still carries its parent's title, a probe of a library
    if member.role == "weight_cache" and role == "importing":
        return
    member.role = role
    member.titled = role != "importing"
    if role == "scheduler":
        member.rank, member.rank_inferred, member.becomes = titles.rank_of(member.argv[0]), False, ""
    elif role != "importing":
        member.rank, member.rank_inferred, member.becomes = "", False, ""


def _infer(siblings: list[Member], slots: tuple[Slot, ...]) -> None:
    """``siblings`` in birth order."""
    workers = {member.pid: member for member in siblings if member.role in WORKERS}
    for pid, slot in ranks.infer([Child(m.pid, _slot(m)) for m in workers.values()], slots).items():
        member = workers[pid]
        member.rank = slot.rank
        member.rank_inferred = slot.role in ("scheduler", "weight_cache")
        if member.role == "importing":
            member.becomes = slot.role
        if slot.role == "weight_cache":
            member.role, member.becomes = "weight_cache", ""


def _slot(member: Member) -> Slot | None:
    """What a titled child is. Weight-cache daemons never get a title and keep their place by order."""
    return Slot(member.role, member.rank) if member.titled else None
