"""/proc/PID/mountinfo: which mount and file system a path is on, without touching the path."""

from __future__ import annotations

from typing import NamedTuple

from sgmon.patterns import regex
from sgmon.proc import files

#: file systems that another machine or a user process answers for: a call on them can hang
_REMOTE = regex(
    r"^(nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|lustre|gpfs|beegfs|ocfs2|gfs2?|orangefs|pvfs2|virtiofs|"
    r"wekafs|vast|fuse(\..*)?|fuseblk|juicefs|s3fs|goofys|davfs)$"
)
_OCTAL = regex(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One row. device is "major:minor"; ``root`` the part of the file system that is mounted."""

    device: str
    root: str
    point: str
    fstype: str
    source: str = ""
    options: str = ""  # super options: a cgroup v1 mount names its controllers here

    @property
    def remote(self) -> bool:
        """Whether a call on this mount may never return."""
        return bool(_REMOTE.match(self.fstype))


def parse(text: str) -> tuple[Mount, ...]:
    """Rows in order; later rows cover earlier ones. Blanks in names are escaped as \\040."""
    rows = []
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        head, tail = left.split(" "), right.split(" ")
        if dash and len(head) >= 5 and tail:
            rows.append(
                Mount(
                    device=head[2],
                    root=_plain(head[3]),
                    point=_plain(head[4]),
                    fstype=tail[0],
                    source=_plain(tail[1]) if len(tail) > 1 else "",
                    options=tail[2] if len(tail) > 2 else "",
                )
            )
    return tuple(rows)


def read(root: str, pid: int | str = "self") -> tuple[Mount, ...]:
    return parse(files.text(f"{root}/{pid}/mountinfo"))


def of_path(rows: tuple[Mount, ...], path: str) -> Mount | None:
    """The mount that holds ``path``: the longest mount point above it, the last of equals."""
    best: Mount | None = None
    for row in rows:
        point = row.point.rstrip("/")
        if (path == point or path.startswith(point + "/")) and (best is None or len(row.point) >= len(best.point)):
            best = row
    return best


def _plain(name: str) -> str:
    return _OCTAL.sub(lambda m: chr(int(m[1], 8)), name)
