"""What the command line decided; built once, never changed."""

from __future__ import annotations

from msgspec import Struct


class Settings(Struct, frozen=True):
    """All choices of one watch. Empty or None means: find out."""

    pid: int | None = None
    is_started: bool = False  # by sgmon run: the pid is a server, or starts one, later
    port: int | None = None
    log: str = ""  # a file, or "-": the descriptor ``log_fd``
    log_fd: int | None = None
    log_command: tuple[str, ...] = ()  # a command that prints the log and follows it
    log_limit_bytes: int = 64 << 20  # a longer log is read from its last bytes on
    log_resume: tuple[str, int] | None = None  # (identity, offset): of this file what comes before is read already
    proc_root: str = "/proc"
    interval_s: float = 1.0
    auto_evidence: bool = True
    watch_dirs: tuple[str, ...] = ()
    gpu: bool = True
    probe_http: bool = True
    simulated_gpus: str = ""
    ascii: bool = False
    theme: str = ""
    mouse: bool = True
    hosts: tuple[str, ...] = ()  # other machines; empty: this one
    via: str = ""  # how they are reached; "": ssh
    remote_python: str = ""
    keys: tuple[tuple[str, str], ...] = ()  # (id of a binding, keys) that the user prefers
