"""Copying that also works where the terminal refuses it: the text goes to a file too."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

    from sgmon.model import Verdict


def copy_text(app: App[object], text: str, what: str) -> None:
    """Into the terminal's clipboard (OSC 52), and into a file whose path is shown."""
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
    return "\n".join(rows)


def save_text(app: App[object], text: str, stem: str) -> Path | None:
    """Into a file of the current folder, else of the temporary one; says where."""
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            path = write_text(text, stem, folder)
        except OSError:
            continue
        app.notify(f"saved: {path}", markup=False, timeout=8)
        return path
    app.notify("could not write a file here nor in the temporary folder", severity="error", markup=False)
    return None


def write_text(text: str, stem: str, folder: Path) -> Path:
    """A new file that only the user may read."""
    path = folder / f"sgmon-{stem}-{time.strftime('%Y%m%d-%H%M%S')}.txt"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text.rstrip("\n") + "\n")
    return path


def show_plain(app: App[object], text: str) -> None:
    """Leave the full screen, print the text where the terminal can select and scroll it, and come back at enter."""
    from textual.app import SuspendNotSupported

    try:
        with app.suspend():
            print(text)
            input("\nenter: back to sgmon ")
    except (SuspendNotSupported, EOFError, OSError):
        return
