"""Copying that also works where the terminal refuses it: the text goes to a file too."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sgmon.text import clean

if TYPE_CHECKING:
    from textual.app import App

    from sgmon.model import Verdict

#: names of one second that are tried when there are such files already
_NAMES = 20


def copy_text(app: App[object], text: str, what: str) -> None:
    """Into the terminal's clipboard (OSC 52), and into a file whose path is shown. What is pasted moves no cursor."""
    text = cleaned(text)
    app.copy_to_clipboard(text)
    try:
        path = write_text(text, "copied", folder=Path(tempfile.gettempdir()))
        app.notify(f"{what} copied; also in {path}", markup=False, timeout=6)
    except OSError as error:
        app.notify(f"{what} copied ({error.strerror}: no file beside it)", markup=False, timeout=6)


def verdict_text(verdict: Verdict) -> str:
    """The verdict, what says so, and the next steps."""
    rows = [f"{verdict.state}: {verdict.headline}"]
    rows += [f"  {item.signal}: {item.text}" for item in verdict.evidence]
    rows += [f"  next: {step.text}" + (f": {step.command}" if step.command else "") for step in verdict.next]
    return "\n".join(clean(row) for row in rows)


def cleaned(text: str) -> str:
    """Each line without escapes and control characters."""
    return "\n".join(clean(line) for line in text.split("\n"))


def save_text(app: App[object], text: str, stem: str) -> Path | None:
    """Into a file of the current folder, else of the temporary one; says where."""
    text = cleaned(text)
    for place in (os.getcwd, tempfile.gettempdir):
        try:
            path = write_text(text, stem, Path(place()))
        except OSError:  # the folder of the shell was deleted, no temporary one can be written, the disk is full
            continue
        app.notify(f"saved: {path}", markup=False, timeout=8)
        return path
    app.notify("could not write a file here nor in the temporary folder", severity="error", markup=False)
    return None


def write_text(text: str, stem: str, folder: Path) -> Path:
    """A new file that only the user may read. One that is there is left alone: in a folder like /tmp it may be
    another user's, who reads what is written into it. Raises OSError."""
    name = f"sgmon-{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(_NAMES):
        path = folder / f"{name}{f'-{number}' if number else ''}.txt"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as file:
            file.write(text.rstrip("\n") + "\n")
        return path
    raise FileExistsError(errno.EEXIST, "there are too many files of this name", str(folder / name))


def show_plain(app: App[object], text: str) -> None:
    """Leave the full screen, print the text where the terminal can select and scroll it, and come back at enter."""
    from textual.app import SuspendNotSupported

    try:
        with app.suspend():
            print(cleaned(text))
            input("\nenter: back to sgmon ")
    except (SuspendNotSupported, EOFError, OSError):
        return
