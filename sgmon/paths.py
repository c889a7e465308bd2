"""Where sgmon keeps its files (``$XDG_STATE_HOME/sgmon``), and how a file is written whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path


def state_dir() -> Path:
    """``$XDG_STATE_HOME/sgmon``, made when missing, for its owner only: recordings tell of a machine.

    Raises OSError where it cannot be made.
    """
    import platformdirs  # 15 ms that most commands do not need

    path = Path(platformdirs.user_state_dir("sgmon"))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_whole(path: Path, parts: Iterable[bytes], mode: int = 0o600) -> Path:
    """Write the whole file or none: beside it first, then renamed. Readable by its owner only, but for ``mode``.
    Raises OSError."""
    partial = path.with_name(path.name + ".part")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.writelines(parts)
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    return path


def code_root() -> str:
    """The folder or archive that this package was imported from. A collector's archive lies in a descriptor."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def code_path() -> tuple[str, ...]:
    """What a child process needs on its path to import this package, and the replacements below the same root."""
    root = code_root()
    return (root, *(path for path in sys.path if path.startswith(root + "/") and path != root))


def code_descriptors() -> tuple[int, ...]:
    """Descriptors that a child must inherit for that."""
    head, _, number = code_root().rpartition("/")
    return (int(number),) if head == "/proc/self/fd" and number.isdigit() else ()
