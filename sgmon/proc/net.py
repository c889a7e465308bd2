"""/proc/PID/net/tcp{,6}: sockets of the network namespace of one process. World-readable.

Columns as in Documentation/networking/proc_net_tcp.rst of the kernel; addresses are 32-bit words in
host byte order.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import NamedTuple

from sgmon.proc import files

STATES = {
    1: "ESTAB",
    2: "SYN_SENT",
    3: "SYN_RECV",
    4: "FIN_WAIT1",
    5: "FIN_WAIT2",
    6: "TIME_WAIT",
    7: "CLOSE",
    8: "CLOSE_WAIT",
    9: "LAST_ACK",
    10: "LISTEN",
    11: "CLOSING",
    12: "NEW_SYN_RECV",
}
_WORD = "<I" if sys.byteorder == "little" else ">I"


class Row(NamedTuple):
    """One socket. rx_queue of a LISTEN row is the length of its accept queue; backlog its limit, None: not told."""

    local: str
    remote: str
    state: str
    rx_queue: int
    tx_queue: int
    retransmits: int
    inode: int
    backlog: int | None = None

    @property
    def words(self) -> str:
        """ "ESTAB 127.0.0.1:43452 -> 127.0.0.1:52553" or "LISTEN 0.0.0.0:20555"."""
        return f"LISTEN {self.local}" if self.state == "LISTEN" else f"{self.state} {self.local} -> {self.remote}"


def parse(text: str) -> list[Row]:
    """Rows of one table that have an inode (TIME_WAIT rows have none); lines of another shape are left out."""
    rows = []
    for line in text.splitlines()[1:]:
        cells = line.split()
        if len(cells) < 10 or cells[9] == "0":
            continue
        try:
            tx, _, rx = cells[4].partition(":")
            rows.append(
                Row(
                    local=address(cells[1]),
                    remote=address(cells[2]),
                    state=STATES.get(int(cells[3], 16), cells[3]),
                    rx_queue=int(rx, 16),
                    tx_queue=int(tx, 16),
                    retransmits=int(cells[6], 16),
                    inode=int(cells[9]),
                )
            )
        except ValueError:
            continue
    return rows


def table(root: str, pid: int) -> dict[int, Row]:
    """Socket inode -> row, TCP over IPv4 and IPv6. Grows with the host: read it rarely (3.5 ms on a busy one)."""
    rows = {row.inode: row for row in parse(files.text(f"{root}/{pid}/net/tcp"))}
    try:
        rows.update((row.inode, row) for row in parse(files.text(f"{root}/{pid}/net/tcp6")))
    except FileNotFoundError:
        pass  # IPv6 switched off
    return rows


def udp(root: str, pid: int) -> dict[int, str]:
    """Socket inode -> "UDP a:b -> c:d", to see a name lookup (port 53) that gets no answer."""
    try:
        return {r.inode: f"UDP {r.local} -> {r.remote}" for r in parse(files.text(f"{root}/{pid}/net/udp"))}
    except OSError:
        return {}


def unix(root: str, pid: int) -> dict[int, str]:
    """Socket inode -> "unix PATH" (columns: Num RefCount Protocol Flags Type St Inode Path)."""
    found = {}
    try:
        lines = files.text(f"{root}/{pid}/net/unix").splitlines()[1:]
    except OSError:
        return {}
    for line in lines:
        cells = line.split(None, 7)
        if len(cells) >= 7 and cells[6].isdigit():
            found[int(cells[6])] = f"unix {cells[7]}" if len(cells) > 7 else "unix socket"
    return found


def unix_listening(root: str, pid: int, path: str) -> tuple[int, ...]:
    """Inodes of the UNIX sockets bound to ``path`` that listen (flag SO_ACCEPTCON, 0x10000). Raises OSError."""
    found = []
    for line in files.text(f"{root}/{pid}/net/unix").splitlines()[1:]:
        cells = line.split(None, 7)
        if len(cells) == 8 and cells[7] == path and cells[6].isdigit() and int(cells[3], 16) & 0x10000:
            found.append(int(cells[6]))
    return tuple(found)


def address(cell: str) -> str:
    """ "0100007F:1F90" -> "127.0.0.1:8080"; an IPv4 address inside IPv6 is written as IPv4."""
    host, _, port = cell.partition(":")
    words = [struct.pack(_WORD, int(host[i : i + 8], 16)) for i in range(0, len(host), 8)]
    raw = b"".join(words)
    if len(raw) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, raw)}:{int(port, 16)}"
    if len(raw) != 16:
        raise ValueError(f"no address: {cell!r}")
    if raw[:12] == b"\0" * 10 + b"\xff\xff":
        return f"{socket.inet_ntop(socket.AF_INET, raw[12:])}:{int(port, 16)}"
    return f"[{socket.inet_ntop(socket.AF_INET6, raw)}]:{int(port, 16)}"
