"""Where sgmon keeps its files (``$XDG_STATE_HOME/sgmon``), and how a file is written whole."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path


def home() -> Path:
    """The user's home folder; "/" where there is none: a user id without an entry, in a container, and no HOME."""
    found = os.path.expanduser("~")
    return Path(found if os.path.isabs(found) else "/")


def state_dir() -> Path:
    """``$XDG_STATE_HOME/sgmon``, made when missing, for its owner only: recordings tell of a machine.

    Raises OSError where it cannot be made.
    """
    import platformdirs  # 15 ms that most commands do not need

    try:
        path = Path(platformdirs.user_state_dir("sgmon"))
    except RuntimeError:  # nobody knows the home
        path = Path()
    return private_folder(path if path.is_absolute() else home() / ".local" / "state" / "sgmon")


def private_folder(path: Path) -> Path:
    """The folder, made when missing, for its owner only whatever the umask is; one that others may enter is closed to
    them. Missing folders above it are made for the owner only, too. Raises OSError."""
    for missing in [one for one in reversed(path.parents) if not one.exists()]:
        missing.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.stat()
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        path.chmod(0o700)
    return path


def make_private(path: Path) -> None:
    """Make the file when missing; only its owner may read it from now on. One that is there is not opened: closing it
    would end the locks that SQLite holds on it (https://www.sqlite.org/howtocorrupt.html, 2.2). Raises OSError."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        found = path.stat()
        if found.st_mode & 0o077 and found.st_uid == os.geteuid():
            path.chmod(0o600)


def open_private(path: Path, flags: int = os.O_RDWR) -> int:
    """A descriptor of the file, made when missing; only its owner may read it from now on. Raises OSError."""
    fd = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077 and found.st_uid == os.geteuid():
        os.fchmod(fd, 0o600)
    return fd


def write_whole(path: Path, parts: Iterable[bytes], mode: int = 0o600) -> Path:
    """Write the whole file or none: beside it first, then renamed. Readable by its owner only, but for ``mode``.
    What another user has put there under the name of the part is not written into. Raises OSError."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.unlink(missing_ok=True)
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
            file.writelines(parts)
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    return path


def code_root() -> str:
    """The folder or archive that this package was imported from. A collector's archive lies in a descriptor."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


#: folder of the collector's archive with what replaces libraries that are not there (sgmon.remote.packing)
STAND_INS = "standin"


def code_path() -> tuple[str, ...]:
    """What a child process needs on its path to import this package, and the replacements below the same root."""
    root = code_root()
    return (root, *(path for path in sys.path if path.startswith(f"{root}/{STAND_INS}")))


def own_program(words: str) -> list[str]:
    """The command of a child that runs Python of ours. "-c" and "-m" alone put the working folder first on the path:
    a json.py that lies there would be imported, as root where sgmon is."""
    paths = f"sys.path[:] = [*{list(code_path())!r}, *(one for one in sys.path if one)]"
    return [sys.executable, "-c", f"import sys; {paths}; {words}"]


def code_descriptors() -> tuple[int, ...]:
    """Descriptors that a child must inherit for that."""
    head, _, number = code_root().rpartition("/")
    return (int(number),) if head == "/proc/self/fd" and number.isdigit() else ()
