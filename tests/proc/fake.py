"""A /proc tree in a folder, with the shapes of the real one."""

from __future__ import annotations

import os
from pathlib import Path

BOOT = 1_795_000_000


class FakeProc:
    """``add`` puts one process in; ``remove`` takes it out, as an exit does."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "proc"
        self._aside = self.root / ".new"  # what is made lies there, where nobody looks for a process
        (self.root / "self").mkdir(parents=True)
        (self.root / "stat").write_text(f"cpu  1 2 3\nbtime {BOOT}\n")
        (self.root / "self" / "mountinfo").write_text(mount_row("/", "ext4"))
        self.add(1, ["/sbin/init"], ppid=0, start=1, comm="init")

    def __str__(self) -> str:
        return str(self.root)

    def add(
        self,
        pid: int,
        argv: list[str] | str,
        *,
        ppid: int = 1,
        comm: str = "",
        state: str = "S",
        start: int | None = None,
        threads: int = 1,
        cpu_ticks: int = 0,
        exit_status: int = 0,
        session: int = 0,
        fds: dict[int, str] | None = None,
        flags: dict[int, int] | None = None,
        environ: dict[str, str] | None = None,
        exe: str = "/usr/bin/python3.11",
        cwd: str = "/srv",
        maps: str = "",
        io: str = "rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\n",
        status: str = "",
        wchan: str = "futex_do_wait",
        syscall: str = "",
        mounts: str = "",
    ) -> None:
        """argv as a list, or as a title set with setproctitle (one string, padded with NUL).

        As of the kernel's files, no reader ever sees a half of it: a process that has no stat yet is taken for a
        stranger, and is not looked at again for a minute.
        """
        place = self.root / str(pid)
        folder = place if place.exists() else self.root / f".{pid}"
        (folder / "fd").mkdir(parents=True, exist_ok=True)
        (folder / "fdinfo").mkdir(exist_ok=True)
        (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
        (folder / "net").mkdir(exist_ok=True)
        name = comm or (argv if isinstance(argv, str) else os.path.basename(argv[0]) if argv else "gone")
        line = stat_line(pid, name[:15], state, ppid, threads, start or pid * 10, cpu_ticks, exit_status, session)
        self.put(folder / "stat", line)
        self.put(folder / "task" / str(pid) / "stat", line)
        self.put(folder / "schedstat", b"1500000000 250000000 7\n")
        self.put(folder / "task" / str(pid) / "schedstat", b"1500000000 250000000 7\n")
        line = argv + "\0" * 40 if isinstance(argv, str) else "".join(f"{word}\0" for word in argv)
        self.put(folder / "cmdline", line.encode("utf-8", "surrogateescape"))
        self.put(folder / "environ", "".join(f"{k}={v}\0" for k, v in (environ or {}).items()).encode())
        status = (
            status
            or "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t3901\t1\nTracerPid:\t0\n"
            "RssAnon:\t     100 kB\nRssFile:\t      20 kB\nRssShmem:\t       4 kB\n"
        )
        texts = {"status": status, "io": io, "maps": maps, "wchan": wchan, "cgroup": "0::/\n"}
        texts["syscall"] = syscall or "202 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n"
        texts["mountinfo"] = mounts or mount_row("/", "ext4")
        texts["net/tcp"] = "  sl  local_address rem_address   st\n"
        for file, text in texts.items():
            self.put(folder / file, text.encode())
        self.link(folder / "exe", exe)
        self.link(folder / "cwd", cwd)
        for fd, target in (fds or {}).items():
            self.link(folder / "fd" / str(fd), target)
            self.put(folder / "fdinfo" / str(fd), f"pos:\t0\nflags:\t{(flags or {}).get(fd, 0o100002):o}\n".encode())
        if folder != place:
            folder.rename(place)

    def put(self, path: Path, content: bytes) -> None:
        """The file has this content at once."""
        self._aside.write_bytes(content)
        self._aside.replace(path)

    def link(self, path: Path, target: str) -> None:
        self._aside.unlink(missing_ok=True)
        self._aside.symlink_to(target)
        self._aside.replace(path)

    def remove(self, pid: int) -> None:
        folder = (self.root / str(pid)).rename(self.root / f".{pid}")
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        folder.rmdir()


def stat_line(
    pid: int,
    comm: str,
    state: str,
    ppid: int,
    threads: int,
    start: int,
    cpu_ticks: int = 0,
    status: int = 0,
    session: int = 0,
) -> bytes:
    """The 52 fields of /proc/PID/stat."""
    rest = ["0"] * 52
    rest[2], rest[3], rest[5], rest[11], rest[13] = state, str(ppid), str(session), "5", str(cpu_ticks)
    rest[19], rest[21], rest[51] = str(threads), str(start), str(status)
    return f"{pid} ({comm}) {' '.join(rest[2:])}\n".encode("utf-8", "surrogateescape")


def mount_row(point: str, fstype: str, device: str = "8:1", options: str = "rw") -> str:
    return f"25 1 {device} / {point} rw,relatime shared:1 - {fstype} source {options}\n"
