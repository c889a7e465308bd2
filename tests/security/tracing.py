"""System calls of sgmon and its children, as strace saw them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: what could signal, trace, write into or slow another process
TOUCHING = (
    *("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "ptrace"),
    *("process_vm_writev", "setpriority", "sched_setaffinity", "sched_setscheduler", "sched_setattr", "ioprio_set"),
    *("prlimit64", "process_madvise", "kcmp", "pidfd_getfd"),
)
OPENING = ("open", "openat", "openat2", "creat")
CHANGING = (
    *("unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "chmod", "fchmodat"),
    *("link", "linkat", "symlink", "symlinkat", "truncate", "chown", "lchown", "fchownat", "mknod", "mknodat"),
    *("mount", "umount2", "setxattr", "utimensat"),
)
STRACE = (
    *("strace", "-f", "-qq", "-y", "-s", "400", "-e", "signal=none", "-e"),
    "trace=" + ",".join((*TOUCHING, *OPENING, *CHANGING, "connect", "sendto", "execve")),
)
_LINE = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<args>.*?)(?:\) += (?P<result>.*))?$")
_RESUMED = re.compile(r"(?P<pid>\d+) +<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)$")
_CUT = " <unfinished ...>"
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FOLDER = re.compile(r"^(?:AT_FDCWD|\d+)<([^>]*)>")


class Call(NamedTuple):
    """One system call. args as strace writes them; result "" where the process ended in it."""

    pid: int
    name: str
    args: str
    result: str

    @property
    def words(self) -> str:
        return f"{self.name}({self.args}) = {self.result}"

    @property
    def path(self) -> str:
        """The file that it names, absolute."""
        found = _STRING.search(self.args)
        folder = _FOLDER.match(self.args)
        name = found[1] if found else ""
        return name if name.startswith("/") or folder is None else f"{folder[1]}/{name}"

    @property
    def writes(self) -> bool:
        """Whether it opens a file to write, or changes one by its name, and has done so."""
        if self.result.startswith("-1 "):
            return False
        if self.name in OPENING:
            return re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND", self.args) is not None
        return self.name in CHANGING


def why_not() -> str:
    """Why nothing can be traced here; "" if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    run = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "true"], capture_output=True, text=True, timeout=60
    )
    return "" if run.returncode == 0 else f"ptrace is not allowed here: {run.stderr.strip()[-200:]}"


def calls_in(path: Path) -> Iterator[Call]:
    """The calls of a file that ``strace -f -o`` wrote; what was cut in two is put together."""
    begun: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        resumed = _RESUMED.match(line)
        if line.endswith(_CUT):
            begun[line.split(" ", 1)[0]] = line[: -len(_CUT)]
            continue
        if resumed is not None:
            line = begun.pop(resumed["pid"], f"{resumed['pid']} {resumed['name']}(") + resumed["rest"]
        match = _LINE.match(line)
        if match is not None:
            yield Call(int(match["pid"]), match["name"], match["args"], match["result"] or "")
