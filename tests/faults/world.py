"""A server of two ranks in a fake /proc, with a real log file and, where a test wants one, a real port."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from tests.discovery.test_find import LAUNCH
from tests.proc.fake import BOOT, FakeProc

LAUNCHER, TP0, TP1 = 100, 110, 120
HZ = os.sysconf("SC_CLK_TCK")
INODE = 777


def log_lines(*more: str) -> str:
    """The first lines of a start in SGLang's words, then ``more``."""
    head = (
        "server_args=ServerArgs(model_path='m', tp_size=2, port=30000)",
        "TP0] Init torch distributed begin.",
        "TP1] Init torch distributed begin.",
        "TP0] Load weight begin. avail mem=78.00 GB",
        "TP1] Load weight begin. avail mem=78.00 GB",
    )
    now = f"{datetime.now():%Y-%m-%d %H:%M:%S}"
    lines = [f"[{now} {line}" if line.startswith("TP") else f"[{now}] {line}" for line in head]
    return "\n".join([*lines, *more]) + "\n"


class World:
    """What sgmon reads: ``fake`` is its /proc, ``log`` the file that launcher and ranks write."""

    def __init__(self, folder: Path, *, log: bool = True) -> None:
        self.fake = FakeProc(folder)
        self.log = folder / "server.log"
        if log:
            self.log.write_text(log_lines())
        self.port: int | None = None
        self.launcher()
        self.rank(TP0, "TP0")
        self.rank(TP1, "TP1")

    def launcher(self, **more: object) -> None:
        port = self.port or 1  # nobody listens on it
        fds = {1: str(self.log), 2: str(self.log), **({7: f"socket:[{INODE}]"} if self.port else {})}
        argv = [*LAUNCH, "--tp", "2", "--port", str(port)]
        options: dict[str, object] = {"argv": argv, "fds": fds, "start": LAUNCHER * 10, **more}
        self.fake.add(LAUNCHER, **options)  # type: ignore[arg-type]

    def rank(self, pid: int, name: str, **more: object) -> None:
        options: dict[str, object] = {"argv": f"sglang::scheduler_{name}", "ppid": LAUNCHER, **more}
        options.setdefault("fds", {1: str(self.log), 2: str(self.log)})
        self.fake.add(pid, **options)  # type: ignore[arg-type]

    def listens(self, port: int, *more: str, owner: int = LAUNCHER, address: str = "0100007F") -> None:
        """The launcher (or another process) listens on ``port``, as its net/tcp and its descriptors tell. more: of its
        arguments."""
        self.port = port
        self.launcher(argv=[*LAUNCH, "--tp", "2", "--port", str(port), *more])
        heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        remote = "0" * len(address) + ":0000"
        row = f"   0: {address}:{port:04X} {remote} 0A 00000000:00000000 00:00000000 00000000  1000        0 {INODE} 1\n"
        table = "tcp" if len(address) == 8 else "tcp6"
        for pid in (1, LAUNCHER):
            (self.root / str(pid) / "net" / table).write_text(heading + row)
        if owner != LAUNCHER:
            (self.root / str(LAUNCHER) / "fd" / "7").unlink()
            self.fake.add(owner, ["nginx"], fds={7: f"socket:[{INODE}]"})

    @property
    def root(self) -> Path:
        return self.fake.root

    @property
    def began(self) -> float:
        """Wall clock when the launcher started."""
        return BOOT + LAUNCHER * 10 / HZ

    def says(self, *lines: str) -> None:
        """Append lines to the log."""
        with open(self.log, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
