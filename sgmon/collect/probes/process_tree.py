"""One reading of /proc for every process of the server's tree, each interval.

Cost (measured on Linux 6.18, see benchmarks): main-thread files of each worker each second; descriptors, sockets and
all threads each five seconds; maps while weights are mapped. Helpers and compilers: stat and schedstat alone.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from sgmon.collect.probes import member_roles
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.exit_status import ExitStatuses, ended
from sgmon.collect.probes.host import Host
from sgmon.collect.probes.member_roles import Member
from sgmon.collect.probes.schedule import Schedule
from sgmon.collect.probes.worker import Descendants, Worker
from sgmon.discovery import process_roles, ray, servers
from sgmon.discovery.tree import Members, children_of, descendants_of
from sgmon.model import ESSENTIAL_ROLES, Compiler, Missing, Process, ProcsReading, Role, Server
from sgmon.proc import counters, files, stat
from sgmon.proc.stat import Stat
from sgmon.servers.registry import get
from sgmon.text import clean

FORGET_EVERY_S = 60.0
_HIDDEN = Missing("proc", "alive, but /proc hides it (hidepid)", "run sgmon with sudo")


class Tree:
    """What is kept of one server between readings."""

    def __init__(self, watched: Watched, server: Server) -> None:
        self.key = server.key
        self._family = get(server.family)
        root = watched.settings.proc_root.rstrip("/") or "/proc"
        now = watched.clock.now
        self._root = root
        self._schedule = Schedule(now, watched.settings.interval_s, lambda: watched.calm)
        self._host = Host(root, server, self._schedule, now)
        self._pids = Members(root, server.pid, server.start_ticks)
        self._exit_statuses = ExitStatuses(root == "/proc", now)
        self._workers: dict[int, Worker] = {}
        self._members: dict[int, Member] = {}
        self._judged: dict[int, tuple[str, ...]] = {}  # the command lines that were looked at for another server
        self._gone: dict[int, Process] = {}
        self._last: dict[int, Process] = {}
        self._uid: int | None = None
        self._driver: ray.Driver | None = None
        self.has_ended = False  # a process that matters, since the look before

    def read(self, server: Server) -> ProcsReading:
        self.has_ended = False
        self._family = get(server.family)  # its workers' titles may have shown another one
        forget = self._schedule.run(("tree", "forget"), FORGET_EVERY_S, lambda: None)
        self._pids.refresh(self._expects_ray(server) or forget)
        self._join_of_ray(forget)
        alive = self._stats(server)
        self._leave_out_others(alive)
        self._host.refresh([pid for pid in self._pids.members if pid in alive])
        member_roles.name_all(self._members, server)
        self._watch_exits(alive)
        found = self._processes(alive, server)
        self._last = found
        shown = [p for p in found.values() if p.role != Role.COMPILER]
        gone = [_as_named(p, self._members[pid]) for pid, p in self._gone.items()]
        return self._reading(tuple(sorted([*shown, *gone], key=_order)), server)

    def close(self) -> None:
        self._exit_statuses.close()

    def _expects_ray(self, server: Server) -> bool:
        """Whether Ray's processes are looked for from now on, so that all have to be looked at again."""
        before, self._pids.spawner = (
            self._pids.spawner,
            ray.RAYLET if self._family.discovery.by_ray(server.args) else "",
        )
        return self._pids.spawner != before

    def _join_of_ray(self, forget: bool) -> None:
        """Add the workers that Ray started for this server: those among its processes with a worker's title."""
        titled = [pid for pid in self._pids.spawned if self._is_titled(pid)]
        if titled and (self._driver is None or forget):
            self._driver = ray.driver_among(self._root, self._pids.members)
        for pid in titled:
            if self._driver is not None and ray.works_for(self._root, pid, self._driver):
                self._pids.join(pid)

    def _is_titled(self, pid: int) -> bool:
        try:
            return self._family.discovery.role_of(stat.cmdline(self._root, pid)) is Role.WORKER
        except OSError as err:
            if files.is_own_limit(err):
                raise
            return False

    def _stats(self, server: Server) -> dict[int, Stat]:
        """The living, by pid; those that ended go to ``_gone`` (workers) or are forgotten (helpers)."""
        alive: dict[int, Stat] = {}
        for pid, start_ticks in list(self._pids.members.items()):
            try:
                worker = self._workers.get(pid)
                seen = worker.look() if worker is not None else stat.read(self._root, pid)
            except OSError as err:
                if files.is_own_limit(err):
                    raise
                if not files.is_gone(err):
                    self._hide(pid, files.missing("proc", err, self._root))
                    continue
                os.stat(f"{self._root}/stat")  # raises where /proc itself has gone meanwhile: then nothing has ended
                if self._exit_statuses.lives_hidden(pid):
                    self._hide(pid, _HIDDEN)
                else:
                    self._end(pid, None)
                continue
            if seen.start_ticks != start_ticks:
                self._end(pid, None)
            elif seen.state in ("Z", "X") and seen.threads <= 1:
                self._meet(pid, seen, server)
                self._end(pid, seen)
            else:
                self._gone.pop(pid, None)
                self._meet(pid, seen, server)
                alive[pid] = seen
        return alive

    def _leave_out_others(self, alive: dict[int, Stat]) -> None:
        """Forget what is below the launcher and starts a server of its own, with all that is below that: a shell that
        had started it became this launcher."""
        launcher = self._members.get(self.key[0])
        if launcher is None or not launcher.argv:
            return
        own = servers.launch_of(launcher.argv)
        fresh = [one for one in self._members.values() if one.argv and self._judged.get(one.pid) != one.argv]
        self._judged.update({one.pid: one.argv for one in fresh})
        others = [one.pid for one in fresh if own and servers.is_another(servers.launch_of(one.argv), own)]
        below = children_of(self._members) if others else {}
        for pid in {each for other in others for each in (other, *descendants_of(other, below))}:
            self._pids.leave_out(pid)
            self._forget(pid)
            self._gone.pop(pid, None)
            alive.pop(pid, None)

    def _forget(self, pid: int) -> None:
        self._members.pop(pid, None)
        self._workers.pop(pid, None)
        self._judged.pop(pid, None)
        self._schedule.forget(pid)

    def _meet(self, pid: int, seen: Stat, server: Server) -> None:
        """Keep a member's identity, and its command line up to date."""
        worker = self._workers.get(pid)
        if worker is None:
            worker = self._workers[pid] = Worker(self._host, self._schedule, pid, seen.start_ticks)
            self._members[pid] = Member(pid, seen.ppid, seen.start_ticks)
            parent = self._members.get(seen.ppid)
            if seen.state == "Z" and parent is not None and not member_roles.spawns_helpers(parent, server):
                self._members[pid].role = self._role_of_zombie(seen, parent)  # it ended before it was read
        member = self._members[pid]
        worker.name(seen, settled=member.role not in (Role.IMPORTING, Role.OTHER) and not member.rank_inferred)
        member.argv = worker.argv

    def _role_of_zombie(self, seen: Stat, parent: Member) -> Role:
        """By its title. Without one it may have been a worker that still imported, where multiprocessing had begun to
        spawn: it starts its resource tracker before the first child. Any program may have an older Python child."""
        role = process_roles.role_of_comm(seen.comm, self._family)
        if role is not Role.IMPORTING:
            return role
        trackers = (one for one in self._members.values() if process_roles.is_tracker(one.argv))
        begun = any(one.ppid == parent.pid and one.start_ticks <= seen.start_ticks for one in trackers)
        return role if begun else Role.OTHER

    def _watch_exits(self, alive: dict[int, Stat]) -> None:
        """From the first look on, once the roles are known: a process may end before the next one."""
        for pid in alive:
            if self._members[pid].role in ESSENTIAL_ROLES:
                self._exit_statuses.watch(pid)

    def _end(self, pid: int, zombie: Stat | None) -> None:
        """A process is gone (or a zombie that nobody has reaped)."""
        member = self._members.get(pid)
        if member is None or member.role not in ESSENTIAL_ROLES:
            self._pids.drop(pid)
            self._forget(pid)
            return
        before = self._gone.get(pid)
        self.has_ended = self.has_ended or before is None
        if before is not None and (before.exit_code, before.exit_signal) != (None, None):
            if before.exit_t is None:
                self._gone[pid] = replace(before, exit_t=self._exit_statuses.exit_t(pid))
            if zombie is None:
                self._pids.drop(pid)  # reaped, and all is known
            return
        last = before or self._last.get(pid) or _unread(member, zombie)
        visible = zombie is not None and counters.may_see(self._root, pid)
        gone = ended(last, self._exit_statuses.end(pid, zombie, visible), zombie)
        self._gone[pid] = replace(gone, exit_t=self._exit_statuses.exit_t(pid))

    def _hide(self, pid: int, gap: Missing) -> None:
        """Not known to have ended, but not to be seen any more: the last reading stands, with the reason."""
        last = self._last.get(pid)
        if last is not None:
            self._gone[pid] = replace(last, missing=(gap,))

    def _processes(self, alive: dict[int, Stat], server: Server) -> dict[int, Process]:
        for pid in alive:
            if self._members[pid].role in ESSENTIAL_ROLES:
                self._workers[pid].prepare()
        owners = {n: pid for pid, worker in self._workers.items() if pid in alive for n in worker.sockets}
        children = children_of({pid: member for pid, member in self._members.items() if pid in alive})
        compilers = self._compilers(alive, server)
        found = {}
        for pid, seen in alive.items():
            worker, member = self._workers[pid], self._members[pid]
            if member.role not in ESSENTIAL_ROLES:
                found[pid] = worker.light(seen, member)
                continue
            below = descendants_of(pid, children)
            totals = Descendants(
                tree_cpu_s=sum(alive[p].cpu_s for p in below),
                tree_wait_s=sum(self._workers[p].wait_s or 0.0 for p in below),
                compilers=tuple(compilers.get(pid, ())),
                launcher_out=self._launcher_out(),
            )
            found[pid] = worker.read(seen, member, totals, owners.get)
        return found

    def _launcher_out(self) -> str | None:
        launcher = self._workers.get(self.key[0])
        return launcher.fds.get(2, launcher.fds.get(1)) if launcher is not None else None

    def _compilers(self, alive: dict[int, Stat], server: Server) -> dict[int, list[Compiler]]:
        """Worker -> the compilers that descend from it, busiest first."""
        made: dict[int, list[Compiler]] = {}
        for member in self._members.values():
            if member.role != Role.COMPILER or member.pid not in alive:
                continue
            above = member_roles.worker_above(member.pid, self._members, server)
            if above is not None:
                seen, argv = alive[member.pid], member.argv
                name = process_roles.compiler_name(argv, seen.comm)
                built = Compiler(member.pid, name, clean(process_roles.what_it_builds(argv), 100), seen.cpu_s)
                made.setdefault(above, []).append(built)
        for each in made.values():
            each.sort(key=lambda c: -c.cpu_s)
        return made

    def _reading(self, processes: tuple[Process, ...], server: Server) -> ProcsReading:
        launcher = next((p for p in processes if p.pid == server.pid), None)
        shards = next((p.shards for p in processes if p.shards is not None and p.shards.mount), None)
        limits, model = self._host.limits, self._host.model
        return ProcsReading(
            processes=processes,
            uid=launcher.uid if launcher else None,
            read_ahead_bytes=self._host.read_ahead_bytes(shards.mount if shards else model.folder),
            oom_kills=limits.oom_kills,
            oom=self._host.oom,
            model_bytes=model.total_bytes,
            cgroup_frozen=bool(limits.frozen),
            throttled=limits.throttled,
            missing=(),
        )


def _unread(member: Member, zombie: Stat | None) -> Process:
    """A process that ended before it could be read."""
    comm = clean(zombie.comm) if zombie is not None else ""
    return Process(member.pid, member.ppid, member.start_ticks, member.role, title=comm, comm=comm)


def _as_named(process: Process, member: Member) -> Process:
    return replace(
        process,
        role=member.role,
        rank=member.rank,
        rank_inferred=member.rank_inferred,
        becomes=member.becomes if member.role == Role.IMPORTING else Role.OTHER,
    )


def _order(process: Process) -> tuple[int, int, int]:
    """Launcher first, then by birth; helpers last."""
    place = 0 if process.role == Role.LAUNCHER else 1 if process.role in ESSENTIAL_ROLES else 2
    return place, process.start_ticks, process.pid
