"""Panel 5: who listens on the port, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sgmon.analyse import watched_dir
from sgmon.model import PortReading, Snapshot
from sgmon.text import clean
from sgmon.units import age, duration, rough
from widgets.ages import ago
from widgets.line import Line
from widgets.panel import Panel
from widgets.phases import has_ended


class PortView(NamedTuple):
    """What the port panel shows."""

    reading: PortReading | None
    address: str
    has_ended: bool
    was_ready: bool
    for_s: int | None
    age_s: int | None
    files: tuple[str, ...] = ()  # the watched folders, one line each


class PortPanel(Panel[PortView]):
    """Address, owner, answer. A refused port is normal until the end of a start."""

    NUMBER = "5"
    TITLE = "port"
    PROBE = "port"
    READS = ("server", "port", "port_changed_t", "verdict", "log", "procs", "clocks", "watch_dirs")
    HINTS = (("c", "copy"),)

    def select(self, snapshot: Snapshot) -> PortView:
        return select(snapshot)

    def heading(self, view: PortView) -> Line:
        return ((view.address, "dim"),)

    def short_heading(self, view: PortView) -> Line:
        """The number without the host."""
        return ((f":{view.address.rpartition(':')[2]}", "dim"),) if ":" in view.address else ()

    def paint(self, view: PortView, width: int, height: int) -> Sequence[Line]:
        return paint(view)


def select(snapshot: Snapshot) -> PortView:
    """The last look at the port, and how old it is."""
    reading = snapshot.port
    address = ""
    if reading is not None:
        address = clean(reading.where, 60)
    elif snapshot.server is not None and snapshot.server.port is not None:
        address = f"{clean(snapshot.server.args.host, 40)}:{snapshot.server.args.port}"
    probe = snapshot.probe("port")
    asked = None if probe is None else probe.last_ok_t
    since = snapshot.port_changed_t
    return PortView(
        reading=reading,
        address=address,
        has_ended=has_ended(snapshot),
        was_ready=snapshot.log.ready_line is not None,
        for_s=None if since is None else rough(snapshot.t - since),
        age_s=None if asked is None else _age_s(snapshot.t - asked, is_calm=snapshot.verdict.state in _CALM),
        files=files(snapshot),
    )


#: a port is looked at this often, at least
_LOOK_S = 12.0
_CALM = ("waiting", "progressing", "slow", "waiting-by-design", "ready")


def _age_s(seconds: float, is_calm: bool) -> int:
    """The age of the last look: 0 while looks come as they should, and nothing may have happened since."""
    return 0 if is_calm and seconds <= _LOOK_S else rough(seconds)


def files(snapshot: Snapshot) -> tuple[str, ...]:
    """ "/dev/shm/out: 12 files, 34.1 MiB, last change 3s ago" of each folder that is watched."""
    if snapshot.watch_dirs is None:
        return ()
    epoch = snapshot.epoch + snapshot.t
    lines = []
    for folder in snapshot.watch_dirs.dirs:
        newest = folder.newest_epoch
        now = epoch if newest is None else newest + rough(epoch - newest)
        lines.append(f"{clean(folder.path, 40)}: {watched_dir.words(folder, now)}")
    return tuple(lines)


def paint(view: PortView) -> list[Line]:
    """Answer, owner, watched folders, age; then what could not be seen."""
    reading = view.reading
    written: list[Line] = [((f" {text}", ""),) for text in view.files]
    if reading is None:
        return [((" not asked yet", "dim"),), *written]
    rows: list[Line] = [answer_line(view, reading)]
    rows += owner_lines(reading)
    rows += written
    if view.age_s is not None:
        rows.append(((f" checked {ago(view.age_s)}", "dim"), (_for(view), "dim")))
    if reading.note:
        rows.append(((f" {clean(reading.note, 120)}", "dim"),))
    rows += [
        ((f" {clean(item.signal, 12)}: {clean(item.why, 80)}", "dim"), (f"; fix: {clean(item.remedy, 80)}", "dim"))
        for item in reading.missing
    ]
    return rows


def answer_line(view: PortView, reading: PortReading) -> Line:
    """One glyph, one word, one explanation."""
    normal_end = view.was_ready
    path = clean(reading.path, 24)
    if reading.answer == "http":
        took = "" if reading.latency_s is None else f" in {duration(reading.latency_s)}"
        if reading.status == 200:
            return ((" ✓ ", "ok"), (f"{path} 200", "ok"), (took, ""))
        word = "not ready yet" if reading.status == 503 and not normal_end else "not healthy"
        style = "warn" if reading.status == 503 and not normal_end else "bad"
        return ((" ✗ ", style), (f"{path} {reading.status}", style), (f" {word}{took}", ""))
    if reading.answer == "refused":
        if view.has_ended:
            return ((" ✗ ", "bad"), ("refused", "bad"), (" the server is gone", ""))
        if normal_end:
            return ((" ✗ ", "bad"), ("refused", "bad"), (" after the ready line", ""))
        return ((" ○ ", "info"), ("refused", "info"), (" normal: it opens last", "dim"))
    if reading.answer == "no_response":
        return ((" ◐ ", "warn"), ("accepts, no answer", "warn"), (_took(reading), "dim"))
    if reading.answer == "skipped":
        return ((" ○ ", "dim"), ("not asked", "dim"))
    words = {"reset": "connection reset", "timeout": "no connection in time"}
    return ((" ✗ ", "warn"), (words.get(reading.answer, clean(reading.answer, 30)), "warn"), (_took(reading), "dim"))


def _took(reading: PortReading) -> str:
    return "" if reading.latency_s is None else f" in {duration(reading.latency_s)}"


def _for(view: PortView) -> str:
    return "" if view.for_s is None else f", unchanged {age(view.for_s)}"


def owner_lines(reading: PortReading) -> list[Line]:
    """Who holds the listening socket: ours, another's (loud), nobody."""
    rows: list[Line] = []
    for listener in reading.listeners:
        name = clean(listener.name, 30) or "?"
        who = f"pid {listener.pid} {name}" if listener.pid is not None else "a process we may not see"
        queue = f", {listener.accept_queue} waiting" if listener.accept_queue else ""
        if listener.ours:
            rows.append(((" listens: ", "dim"), (f"the server, {who}{queue}", "")))
        elif listener.ours is False:
            rows.append(((" listens: ", "dim"), (f"ANOTHER PROCESS: {who}{queue}", "bad")))
        else:
            rows.append(((" listens: ", "dim"), (f"{who}: owner not permitted{queue}", "warn")))
    return rows or [((" listens: nobody", "dim"),)]
