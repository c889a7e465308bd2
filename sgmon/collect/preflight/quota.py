"""What the user's disk quota leaves. Asked of ``quota``, with a deadline: it may ask an NFS server."""

from __future__ import annotations

import os
import pwd
import shutil

from msgspec.structs import replace

from sgmon.discovery.inner import Inside
from sgmon.model.preflight import Space
from sgmon.proc import child, mounts

DEADLINE_S = 2.0
#: mounts on which quotas of users are kept: by option (mount(8)), or on the server
_OPTIONS = frozenset({"usrquota", "uquota", "usrjquota", "uqnoenforce", "quota"})
_ON_SERVER = ("nfs", "nfs4")
_BLOCK = 1024


def of(inside: Inside, space: Space) -> Space:
    """``space`` with what the quota leaves; unchanged where the mount has none, or nothing tells."""
    mount = mounts.of_path(inside.rows, inside.real(space.path))
    if mount is None or inside.prefix or space.hung or not _kept(mount):
        return space
    program, user = shutil.which("quota"), _user(inside)
    if program is None or user is None:
        return space
    argv = [program, "-u", "-w", "-p", "-v", "-f", mount.point, *user]
    said = child.output(argv, DEADLINE_S, codes=(0, 1))  # 1: exceeded
    left = left_bytes((said or b"").decode("utf-8", "replace"), mount.source)
    return space if left is None else replace(space, quota_bytes=left)


def _user(inside: Inside) -> tuple[str, ...] | None:
    """The argument that names the server's user, () for our own; None: only root may ask about another one."""
    try:
        uid = os.stat(f"{inside.root}/{inside.pid}").st_uid
        return () if uid == os.geteuid() else (pwd.getpwuid(uid).pw_name,) if os.geteuid() == 0 else None
    except (OSError, KeyError):
        return None


def _kept(mount: mounts.Mount) -> bool:
    options = {word.split("=")[0] for word in mount.options.split(",")}
    return bool(options & _OPTIONS) or mount.fstype in _ON_SERVER


def left_bytes(text: str, device: str) -> int | None:
    """Of ``quota -w``: the row of the device, "blocks quota limit grace ..." in KiB, "*" behind what is exceeded; a
    limit of 0 is none."""
    for line in text.splitlines():
        cells = line.split()
        if len(cells) >= 4 and cells[0] == device:
            numbers = [cell.rstrip("*") for cell in cells[1:4]]
            if all(number.isdigit() for number in numbers):
                used, soft, hard = map(int, numbers)
                limit = hard or soft
                return max(0, limit - used) * _BLOCK if limit else None
    return None
