"""``find``: one look at /proc, before any port is open, for the server to watch."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISREG

from msgspec.structs import replace

from sgmon.discovery import servers, tree
from sgmon.discovery.describe import arguments, describe
from sgmon.discovery.errors import TargetError
from sgmon.discovery.servers import Launcher, Scan
from sgmon.discovery.version import started_epoch
from sgmon.model import Candidate, Orphan, Server, ServerArgs, ServerReading
from sgmon.proc import exits, fds, net
from sgmon.proc.stat import Stat
from sgmon.servers import names, registry
from sgmon.servers.registry import is_secret_flag
from sgmon.settings import Settings
from sgmon.text import clean, masked_argv

#: how many orphans are named: a server of eight ranks leaves ten
ORPHANS = 16


def find(root: Path | str, settings: Settings, known: Server | None = None) -> ServerReading:
    """The server that ``settings`` ask for, else the one that started last. ``known``: what was found before; its
    slow facts (version, arguments) are not read again. TargetError: what was asked for cannot be watched."""
    base = str(root)
    if not os.path.isdir(base) or not any(name.isdigit() for name in os.listdir(base)):
        words = f"there is no process list in {base}, and a server can only be found through it"
        raise TargetError(words, "run sgmon on the Linux machine where the server runs")
    scan = servers.look(base)
    args = {found.stat.pid: _arguments(base, found, known) for found in scan.servers}
    candidates = tuple(_candidate(base, found, args[found.stat.pid][0]) for found in scan.servers)
    chosen = _choose(base, scan, args, settings)
    looked_for = _looked_for(scan, settings)
    orphans = tuple(_orphan(base, scan, pid) for pid in scan.orphans[:ORPHANS])
    if chosen is None:
        return ServerReading(None, candidates, looked_for, asked_port=settings.port, orphans=orphans)
    old = known if known is not None and _same(chosen, known) else None
    server = describe(base, chosen, settings, old)
    server = replace(server, log_writers=_other_writers(base, chosen, scan))
    return ServerReading(server, candidates, looked_for, orphans=orphans)


def _other_writers(base: str, chosen: Launcher, scan: Scan) -> tuple[int, ...]:
    """The other servers whose output goes into the same file."""
    own = _output_files(base, chosen.stat.pid) if len(scan.servers) > 1 else set()
    others = (one.stat.pid for one in scan.servers if one is not chosen)
    return tuple(sorted(pid for pid in others if own and own & _output_files(base, pid)))


def _output_files(base: str, pid: int) -> set[tuple[int, int]]:
    """(device, inode) of what descriptors 1 and 2 are, where they are regular files."""
    found = set()
    for number in (1, 2):
        try:
            status = os.stat(f"{base}/{pid}/fd/{number}")
        except OSError:
            continue
        if S_ISREG(status.st_mode):
            found.add((status.st_dev, status.st_ino))
    return found


def _choose(base: str, scan: Scan, args: dict[int, tuple[ServerArgs, str]], settings: Settings) -> Launcher | None:
    if settings.pid is not None:
        return _above(base, settings.pid, scan)
    if settings.port is None:
        return _newest(scan, args)
    hidden = None
    for found in scan.servers:
        its, _ = args[found.stat.pid]
        if not its.known:
            hidden = hidden or found  # its port is not known: it may be the one
        elif settings.port in (its.port, *its.further_ports) or (
            its.picks_port and settings.port in _listens_on(base, found.stat.pid)
        ):
            return found
    return hidden


def _newest(scan: Scan, args: dict[int, tuple[ServerArgs, str]]) -> Launcher | None:
    """The server that started last. Of its nodes on this host the first: it has the port and the ready line."""
    if not scan.servers:
        return None
    last = scan.servers[0]
    meets, _ = args[last.stat.pid]
    if meets.nnodes < 2 or not meets.dist_init_addr:
        return last
    nodes = [one for one in scan.servers if _joins(args[one.stat.pid][0], meets)]
    return min(nodes, key=lambda one: args[one.stat.pid][0].node_rank)


def _joins(one: ServerArgs, other: ServerArgs) -> bool:
    return (one.nnodes, one.dist_init_addr, one.model_path) == (other.nnodes, other.dist_init_addr, other.model_path)


def _orphan(base: str, scan: Scan, pid: int) -> Orphan:
    title = clean(" ".join(masked_argv(scan.argvs[pid], is_secret_flag)), 80)
    own = scan.table[pid]
    return Orphan(pid, own.start_ticks, title, _listens_on(base, pid), _may_be_its(own, scan))


def _may_be_its(own: Stat, scan: Scan) -> int | None:
    """A launcher that may have started it: of its family and session, and older. None: its own is gone."""
    family = registry.family_of_title(scan.argvs[own.pid])
    return next(
        (
            one.stat.pid
            for one in scan.servers
            if one.family is family
            and own.session == one.stat.session != 0
            and one.stat.start_ticks <= own.start_ticks
        ),
        None,
    )


def _listens_on(base: str, pid: int) -> tuple[int, ...]:
    """The TCP ports on which a process listens; () where that may not be read."""
    try:
        inodes = {fds.inode(target) for target in fds.read(base, pid).values()}
        rows = net.table(base, pid)
    except OSError:
        return ()
    ports = {int(row.local.rpartition(":")[2]) for n, row in rows.items() if n in inodes and row.state == "LISTEN"}
    return tuple(sorted(ports))


def _above(base: str, pid: int, scan: Scan) -> Launcher:
    """The launcher that ``pid`` is, or belongs to, or has started."""
    by_pid = {found.stat.pid: found for found in scan.servers}
    if pid in by_pid:
        return by_pid[pid]
    if pid not in scan.table:
        hidden = " visible: /proc hides it (hidepid)" if base == "/proc" and exits.exists(pid) else ""
        raise TargetError(f"there is no process {pid}{hidden}", _others(scan))
    for up in tree.ancestors(pid, scan.table):
        if up in by_pid:
            return by_pid[up]
    for found in scan.servers:  # a wrapper: a start script, timeout, uv run
        if pid in tree.ancestors(found.stat.pid, scan.table):
            return found
    if scan.table[pid].state in ("Z", "X") and scan.table[pid].threads <= 1:
        comm = clean(scan.table[pid].comm)
        raise TargetError(f"process {pid} ({comm}) has ended; its parent has not taken note yet", _others(scan))
    argv = scan.argvs.get(pid, ())
    name = clean(" ".join(masked_argv(argv, is_secret_flag)), 60) or clean(scan.table[pid].comm)
    family = registry.family_of_title(argv)
    if family is not None:
        raise TargetError(f"process {pid} ({name}) is {family.label}'s, but its launcher is gone", _others(scan))
    raise TargetError(f"process {pid} ({name}) is no {names.labels()} server and belongs to none", _others(scan))


def _others(scan: Scan) -> str:
    if not scan.servers:
        return f"no {names.labels()} server runs here: without --pid sgmon waits for one"
    pids = ", ".join(f"pid {found.stat.pid} ({found.family.label})" for found in scan.servers[:5])
    return f"servers here: {pids} (without --pid the newest is watched)"


def _looked_for(scan: Scan, settings: Settings) -> str:
    number = len(scan.table)
    among = f"among {number} process{'' if number == 1 else 'es'}"
    words = f"{'; '.join(family.launched_by for family in registry.families())}; {among}"
    if settings.port is not None:
        words = f"a server with port {settings.port}: {words}"
    if 1 not in scan.table:
        words += " (only those that /proc shows to this user)"
    return words


def _candidate(base: str, launcher: Launcher, args: ServerArgs) -> Candidate:
    return Candidate(
        pid=launcher.stat.pid,
        start_ticks=launcher.stat.start_ticks,
        title=clean(" ".join(masked_argv(launcher.argv, is_secret_flag)), 200),
        port=args.fixed_port,
        model=args.model_path,
        started_epoch=started_epoch(base, launcher.stat.start_ticks),
        family=launcher.family.name,
    )


def _arguments(base: str, launcher: Launcher, known: Server | None) -> tuple[ServerArgs, str]:
    if known is not None and _same(launcher, known) and known.args.known:
        return known.args, known.args_source
    return arguments(base, launcher)


def _same(launcher: Launcher, known: Server) -> bool:
    """Whether it is the known one; one whose workers have shown another family is described anew."""
    return (launcher.stat.pid, launcher.stat.start_ticks, launcher.family.name) == (*known.key, known.family)
