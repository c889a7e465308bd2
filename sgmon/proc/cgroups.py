"""Control groups: frozen (docker pause), throttled (CPU quota), out of memory. v1 and v2.

v2: Documentation/admin-guide/cgroup-v2.rst; v1: Documentation/admin-guide/cgroup-v1/{memory,freezer-subsystem}.rst.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sgmon.proc import files
from sgmon.proc.mounts import Mount


class CgroupLimits(NamedTuple):
    """None: not told here. oom_kills and throttled are counts since the group was made."""

    frozen: bool | None = None
    throttled: int | None = None
    oom_kills: int | None = None
    memory_max_bytes: int | None = None


def paths(text: str, mounts: tuple[Mount, ...]) -> dict[str, str]:
    """Controller -> directory, from the text of /proc/PID/cgroup; "" is the v2 hierarchy."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        cells = line.split(":", 2)
        if len(cells) < 3:
            continue
        for controller in cells[1].split(","):
            folder = _folder(controller, cells[2], mounts)
            if folder:
                found[controller] = folder
    return found


def limits(folders: dict[str, str]) -> CgroupLimits:
    """What the groups say; a file that is not there counts as not told."""
    unified = folders.get("", "")
    memory = folders.get("memory", "")
    cpu = folders.get("cpu", "")
    freezer = folders.get("freezer", "")
    return CgroupLimits(
        frozen=_frozen(unified, freezer),
        throttled=_first(_value(f"{cpu or unified}/cpu.stat", "nr_throttled")),
        oom_kills=_first(
            _value(f"{memory}/memory.oom_control", "oom_kill") if memory else None,
            _value(f"{unified}/memory.events", "oom_kill") if unified else None,
        ),
        memory_max_bytes=_size(f"{memory}/memory.limit_in_bytes" if memory else f"{unified}/memory.max"),
    )


def memory_folder(folders: dict[str, str]) -> str:
    """The folder that counts a process's memory; "" where there is none."""
    return folders.get("memory") or folders.get("", "")


def oom_counts(folders: Iterable[str], mounts: tuple[Mount, ...]) -> dict[str, int]:
    """Folder -> kills by the OOM killer, of these groups and all above them; what cannot be read is left out.

    v2 counts those below a group as well, v1 the group alone.
    """
    tops = {mount.point.rstrip("/") for mount in mounts if mount.fstype in ("cgroup", "cgroup2")}
    found: dict[str, int] = {}
    for folder in folders:
        while folder and folder not in found:
            kills = _first(
                _value(f"{folder}/memory.events", "oom_kill"), _value(f"{folder}/memory.oom_control", "oom_kill")
            )
            if kills is not None:
                found[folder] = kills
            if folder in tops or not any(folder.startswith(top + "/") for top in tops):
                break
            folder = folder.rpartition("/")[0]
    return found


def _frozen(unified: str, freezer: str) -> bool | None:
    """Either hierarchy may be the one that freezes: a hybrid host has the group in both, and docker pauses by v1."""
    state = _text(f"{freezer}/freezer.state").strip() if freezer else ""
    newer = _value(f"{unified}/cgroup.events", "frozen") if unified else None
    if not state and newer is None:
        return None
    return bool(newer) or state not in ("", "THAWED")


def host_oom_kills(root: str) -> int | None:
    """Kills by the OOM killer since boot, whole host (/proc/vmstat, Linux >= 4.13)."""
    try:
        text = files.read(f"{root}/vmstat")
    except OSError:
        return None
    _, found, value = text.partition(b"\noom_kill ")  # 190 lines, read each two seconds: not taken apart
    number = value.split(b"\n", 1)[0]
    return int(number) if found and number.isdigit() else None


def _folder(controller: str, path: str, mounts: tuple[Mount, ...]) -> str:
    for mount in mounts:
        if controller == "" and mount.fstype != "cgroup2":
            continue
        if controller and (mount.fstype != "cgroup" or controller not in mount.options.split(",")):
            continue
        inner = path
        if mount.root != "/" and (path == mount.root or path.startswith(mount.root + "/")):
            inner = path[len(mount.root) :]
        return (mount.point.rstrip("/") + "/" + inner.lstrip("/")).rstrip("/")
    return ""


def _text(path: str) -> str:
    try:
        return files.text(path)
    except OSError:
        return ""


def _value(path: str, name: str) -> int | None:
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return None


def _size(path: str) -> int | None:
    value = _text(path).strip()
    return int(value) if value.isdigit() and int(value) < 1 << 60 else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
