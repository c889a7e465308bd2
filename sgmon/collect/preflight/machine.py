"""Addresses, interfaces and limits of the machine, as the server has them."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Iterator

import psutil
from msgspec.structs import replace

from sgmon.discovery.inner import Inside
from sgmon.model import Server
from sgmon.model.preflight import Limits, Resolved
from sgmon.proc import cgroups, files, mounts
from sgmon.proc.guard import CallGuard, HungError
from sgmon.text import without_prefix

RESOLVE_S = 3.0
#: free memory is given in steps of this, so that an idle machine reads the same
_COARSE = 1024**3
_NAMES: CallGuard[tuple[str, ...]] = CallGuard()


def rendezvous(server: Server) -> tuple[str, int | None]:
    """(host, port) of the arguments' rendezvous address; ("", None) without one."""
    address = without_prefix(server.args.dist_init_addr, "tcp://")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return "", None
    return host.strip("[]"), int(port)


def resolved(server: Server, *, meets: bool = True) -> tuple[Resolved, ...]:
    """The addresses that the arguments name. Asks the resolver, which may ask a name server; nobody else. meets:
    whether the ranks meet at the rendezvous address of the arguments."""
    host = _resolve("host", server.args.host.strip("[]"))
    here = any(_can_bind(one) for one in host.addresses) if host.addresses else None
    meeting, port = rendezvous(server) if meets else ("", None)
    return (replace(host, here=here), *((_routed(_resolve("rendezvous", meeting), port or 1),) if meeting else ()))


def _routed(found: Resolved, port: int) -> Resolved:
    """With what the routing table says of its addresses: a datagram socket that is connected sends nothing (udp(7)),
    and the call is refused where no route leads there."""
    refused = 0
    for address in found.addresses:
        try:
            with socket.socket(_family(address), socket.SOCK_DGRAM) as trial:
                trial.connect((address, port))
                return replace(found, routed=True, source=str(trial.getsockname()[0]))
        except OSError as err:
            refused += err.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL)  # no own address
    return replace(found, routed=False) if found.addresses and refused == len(found.addresses) else found


def _resolve(what: str, name: str) -> Resolved:
    try:
        return Resolved(what, name, (str(ipaddress.ip_address(name)),))
    except ValueError:
        pass
    try:
        return Resolved(what, name, _NAMES.run(name, lambda: _addresses(name), RESOLVE_S))
    except HungError:
        return Resolved(what, name, error="failed")
    except socket.gaierror as err:
        unknown = err.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        return Resolved(what, name, error="unknown" if unknown else "failed", words=err.strerror or "")
    except (OSError, ValueError):
        return Resolved(what, name, error="failed")


def _can_bind(address: str) -> bool:
    """Whether a socket can be bound to the address, on a port of the kernel's choice. False only for an address that
    is not this machine's."""
    try:
        with socket.socket(_family(address), socket.SOCK_STREAM) as trial:
            trial.bind((address, 0))
    except OSError as err:
        return err.errno != errno.EADDRNOTAVAIL
    return True


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _addresses(name: str) -> tuple[str, ...]:
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(row[4][0]) for row in found))


def interfaces() -> tuple[tuple[str, bool], ...]:
    """(name, is it up); () where that is not to be seen."""
    try:
        found = psutil.net_if_stats()
    except OSError:  # a /proc of processes alone (subset=pid, ProcSubset= of systemd)
        return ()
    return tuple(sorted((name, bool(state.isup)) for name, state in found.items()))


def limits(inside: Inside) -> Limits:
    """What the machine and the server's control group grant."""
    available, total, swap = _memory()
    group_bytes, group_cpus = _group(inside)
    open_files, locked = _rlimits(inside)
    return Limits(
        memory_available_bytes=available,
        memory_total_bytes=total,
        group_memory_bytes=group_bytes,
        group_cpus=group_cpus,
        cpus=os.cpu_count(),
        open_files=open_files,
        locked_bytes=locked,
        swap_bytes=swap,
    )


def _memory() -> tuple[int | None, int | None, int | None]:
    """Bytes that are available, of all memory, of swap; None: not to be seen."""
    try:
        memory = psutil.virtual_memory()
        return memory.available // _COARSE * _COARSE, memory.total, psutil.swap_memory().total
    except OSError:  # as above
        return None, None, None


def _group(inside: Inside) -> tuple[int | None, float | None]:
    """(memory limit, CPUs), the least of its control group and of those above it; None: none, or not readable."""
    try:
        text, rows = files.text(f"{inside.root}/{inside.pid}/cgroup"), mounts.read(inside.root)
    except OSError:
        return None, None
    found = cgroups.paths(text, rows)
    memory = [
        cgroups.limits({name: one}).memory_max_bytes for name in ("memory", "") for one in _up(found, name, rows)
    ]
    cpus = [_quota(one, "") for one in _up(found, "", rows)] + [_quota("", one) for one in _up(found, "cpu", rows)]
    return min((n for n in memory if n is not None), default=None), min(
        (n for n in cpus if n is not None), default=None
    )


def _up(found: dict[str, str], controller: str, rows: tuple[mounts.Mount, ...]) -> Iterator[str]:
    """The group's folder in this hierarchy, then those above it that are to be seen."""
    tops = {row.point.rstrip("/") for row in rows if row.fstype in ("cgroup", "cgroup2")}
    folder = found.get(controller, "")
    while folder:
        yield folder
        if folder in tops or not any(folder.startswith(f"{top}/") for top in tops):
            return
        folder = folder.rpartition("/")[0]


def _quota(unified: str, cpu: str) -> float | None:
    """cpu.max: "200000 100000" (cgroup v2); cpu.cfs_quota_us and cpu.cfs_period_us (v1). "max" and -1: no limit."""
    try:
        if cpu:
            quota, period = (int(files.text(f"{cpu}/cpu.cfs_{name}_us")) for name in ("quota", "period"))
        else:
            quota, period = (int(word) for word in files.text(f"{unified}/cpu.max").split()[:2])
    except (OSError, ValueError):
        return None
    return quota / period if quota > 0 and period > 0 else None


def _rlimits(inside: Inside) -> tuple[int | None, int | None]:
    """(hard limit of open files: servers raise the soft one themselves; soft limit of locked memory)."""
    try:
        rows = files.text(f"{inside.root}/{inside.pid}/limits").splitlines()
    except OSError:
        return None, None
    cells = {row[:26].strip(): row[26:].split() for row in rows}
    return _limit(cells.get("Max open files"), 1), _limit(cells.get("Max locked memory"), 0)


def _limit(cells: list[str] | None, at: int) -> int | None:
    return int(cells[at]) if cells is not None and len(cells) > at and cells[at].isdigit() else None
