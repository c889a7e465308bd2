"""What shows while there is no server: what is looked for, what is here already, how to start one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sgmon.servers import names
from sgmon.text import clean
from sgmon.units import gib, rough
from widgets.ages import ago
from widgets.line import Line, wrap
from widgets.panel import Panel

if TYPE_CHECKING:
    from sgmon.model import Snapshot


class WaitingView(NamedTuple):
    """What the waiting page shows."""

    is_replay: bool
    asked_s: int | None
    gpus: str
    gpu_trouble: str
    error: str
    remedy: str


#: before the first snapshot
_OPENING = WaitingView(False, None, "", "", "", "")


class WaitingPanel(Panel[WaitingView], can_focus=False):
    """The whole body until a server is seen."""

    NUMBER = ""
    TITLE = "waiting for a server"
    is_started = False  # by sgmon run: there is nothing else to start

    def update_view(self) -> None:
        if self.snapshot is not None:
            super().update_view()
        elif self.size.width:
            self.show_lines(self.compose_rows(_OPENING))

    def select(self, snapshot: Snapshot) -> WaitingView:
        return select(snapshot)

    def paint(self, view: WaitingView, width: int, height: int) -> Sequence[Line]:
        rows = paint(view, width, is_started=self.is_started)
        return rows if len(rows) <= height else [row for row in rows if row]


def select(snapshot: Snapshot) -> WaitingView:
    """From a snapshot without a server."""
    probe = snapshot.probe("server")
    gpus = snapshot.gpu.gpus
    used = [gpu.used_bytes for gpu in gpus if gpu.used_bytes is not None]
    words = ""
    if gpus:
        words = f"{len(gpus)} GPUs" if len(gpus) > 1 else "1 GPU"
        words += f", {clean(gpus[0].name, 40)}" if gpus[0].name else ""
        words += f", {gib(sum(used))} GiB in use" if used else ""
    return WaitingView(
        is_replay=bool(snapshot.replay),
        asked_s=None if probe is None or probe.last_ok_t is None else rough(snapshot.t - probe.last_ok_t),
        gpus=words,
        gpu_trouble=clean(snapshot.gpu.unavailable, 160),
        error=clean(probe.error, 200) if probe else "",
        remedy=clean(probe.remedy, 200) if probe else "",
    )


def paint(view: WaitingView, width: int, *, is_started: bool = False) -> list[Line]:
    """What is looked for; then three ways on, which neither a recording has nor who has just started a server."""
    rows: list[Line] = [()]
    if view.is_replay:
        words = f"no {names.labels()} server up to this moment of the recording"
        return [*rows, *wrap(((" seen         ", "info"), (words, "")), width - 1, indent=14)]
    rows += wrap(((" looking for  ", "info"), (f"a running {names.labels()} server", "")), width - 1, indent=14)
    asked = "none yet" if view.asked_s is None else ago(view.asked_s)
    words = f"{asked}; this page changes by itself when a server starts"
    rows += wrap(((" last look    ", "info"), (words, "dim")), width - 1, indent=14)
    if view.error:
        rows += wrap(((" trouble      ", "bad"), (view.error, "")), width - 1, indent=14)
        if view.remedy:
            rows += wrap(((" fix          ", "key"), (view.remedy, "")), width - 1, indent=14)
    if view.gpus:
        rows.append(((" on this node ", "info"), (view.gpus, "")))
    elif view.gpu_trouble:
        rows += wrap(
            ((" on this node ", "info"), (f"no GPU readings: {view.gpu_trouble}", "dim")), width - 1, indent=14
        )
    if is_started:
        return rows
    rows.append(())
    ways: list[Line] = [
        (
            (" started it already?  ", ""),
            ("sgmon --pid PID", "accent"),
            ("  or  ", "dim"),
            ("sgmon --port PORT", "accent"),
        ),
        ((" start and watch it:  ", ""), (f"sgmon run -- {names.start_command()} ...", "accent")),
        ((" try sgmon without:   ", ""), ("sgmon demo", "accent")),
    ]
    for way in ways:
        rows += wrap(way, width - 1, indent=22)
    return rows
