"""Making a bundle from a watch: what report, wait and the dashboard share."""

from __future__ import annotations

import os
import threading
from datetime import datetime
from pathlib import Path

from sgmon.commands.watching import UsageError
from sgmon.export.bundle import Bundle, collect, pack
from sgmon.model import Snapshot
from sgmon.paths import private_folder, state_dir
from sgmon.watch.engine import Engine

#: files of the server may lie on a mount that hangs
DEADLINE_S = 30.0


class BundleError(Exception):
    """There is no bundle: one sentence that says why."""


def zip_path(name: str, text: str) -> Path | None:
    """The file of an option; None for "". A report is a zip, so that no other ending will do. Raises UsageError."""
    path = Path(text)
    if not text or path.is_dir() or path.suffix.lower() == ".zip":
        return path if text else None
    raise UsageError(f"{name} {text}: a report is a zip; give a folder, or a name that ends in .zip")


def name_for(snapshot: Snapshot) -> str:
    """ "sgmon-report-20261129-175500-stalled"."""
    when = datetime.fromtimestamp(snapshot.epoch + snapshot.t)
    return f"sgmon-report-{when:%Y%m%d-%H%M%S}-{snapshot.verdict.state}"


def make(
    engine: Engine, *, root: str = "/proc", made_by: str = "", log: bool = True, hash_paths: bool = False
) -> Bundle:
    """The bundle of what ``engine`` knows now. Raises BundleError."""
    snapshot = engine.snapshot
    live = engine.replay is None
    if engine.replay is not None and engine.replay.is_cut:
        made_by = f"{made_by} of a recording that ends in the middle".strip()
    result: list[Bundle] = []
    errors: list[str] = []

    def work() -> None:
        try:
            recording = engine.recording(f"report: {snapshot.verdict.headline}")
            materials = collect(snapshot, recording, root=root, live=live, made_by=made_by)
            result.append(pack(materials, name=name_for(snapshot), log=log, hash_paths=hash_paths))
        except OSError as err:
            errors.append(f"{err.filename or 'a file'}: {err.strerror}")

    thread = threading.Thread(target=work, name="bundle", daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    if result:
        return result[0]
    why = f"the server's files did not answer in {DEADLINE_S:.0f} s"
    if errors or not thread.is_alive():
        why = errors[0] if errors else "sgmon has an error of its own, see the traceback"
    raise BundleError(f"no report could be made: {why}")


def write(bundle: Bundle, wanted: Path | None) -> Path:
    """Write to ``wanted``, else to the working directory, else to sgmon's own folder; returns the path.

    Raises OSError for the last of them.
    """
    if wanted is not None:
        return bundle.write(wanted / bundle.name if wanted.is_dir() else wanted)
    here = Path.cwd()
    if os.access(here, os.W_OK):
        try:
            return bundle.write(here / bundle.name)
        except OSError:
            pass  # e.g. the disk is full
    folder = private_folder(state_dir() / "reports")
    return bundle.write(folder / bundle.name)
