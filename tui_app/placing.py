"""Gives the parts of the overview their places: asks each how many rows it wants, and keeps what was once wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tui_app.arrangement import Arrangement, Wants, arrange

if TYPE_CHECKING:
    from textual.geometry import Size

    from sgmon.model import Snapshot
    from widgets.panel import Panel
    from widgets.verdictbar import VerdictBar


class Placing:
    """Rows once wanted stay until the situation changes: a calm screen stays."""

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}  # by panel, since the situation was another
        self._situation: tuple[object, ...] = ()

    def arrange(
        self,
        panels: Mapping[str, Panel],
        verdict: VerdictBar,
        snapshot: Snapshot,
        size: Size,
        active: str,
        zoomed: bool,
    ) -> Arrangement:
        """The places for what the panels show now."""
        width, height = size
        self._forget_other_situation(snapshot, size)
        for number, panel in panels.items():
            across = panel.size.width or width
            asked = 0 if number == "4" else panel.wants(across, height // 3)  # the log takes what is left
            self._wanted[number] = max(self._wanted.get(number, 0), asked)
        least, most = verdict.wanted_rows(width)
        self._wanted["verdict"] = max(self._wanted.get("verdict", 0), most)
        is_over = snapshot.verdict.state == "crashed" or (bool(panels["3"].view) and has_ended(snapshot))
        rows = {number: self._wanted[number] or _guess(number, snapshot) for number in panels}

        def gpus(across: int, room: int) -> int:
            if panels["2"].view is None:
                return room
            self._wanted["filled"] = max(self._wanted.get("filled", 0), panels["2"].fills(across, room))
            return min(room, self._wanted["filled"])

        wants = Wants(least, self._wanted["verdict"], rows, is_over, gpus)
        made = arrange(width, height, wants, active, zoomed)
        for number in "3", "2":  # a table that folds because it does not get all its rows needs fewer
            if (place := made.places.get(number)) is not None and (fits := panels[number].wants(*place[2:])):
                rows[number] = min(rows[number], fits)
        return arrange(width, height, wants, active, zoomed)

    def _forget_other_situation(self, snapshot: Snapshot, size: Size) -> None:
        verdict = snapshot.verdict
        server = snapshot.server.pid if snapshot.server is not None else 0
        situation = (size, verdict.state, verdict.odd_ranks, server, len(snapshot.ranks))
        if situation != self._situation:
            self._situation, self._wanted = situation, {}


def apply(made: Arrangement, panels: Mapping[str, Panel], verdict: VerdictBar) -> None:
    """Move the widgets there; a panel without a place is hidden."""
    verdict.styles.height = made.verdict
    for number, panel in panels.items():
        place = made.places.get(number)
        panel.display = place is not None
        panel.names_itself = not made.has_tabs
        if place is not None:
            panel.styles.offset = (place.x, place.y)
            panel.styles.width, panel.styles.height = place.width, place.height


def has_ended(snapshot: Snapshot) -> bool:
    """Whether no process of the server is left."""
    parts = [part for _, part in snapshot.parts if part.clocks]
    return bool(parts) and not any(process.alive for part in parts for process in part.procs.processes)


def _guess(number: str, snapshot: Snapshot) -> int:
    """Rows of a panel that has shown nothing yet, so that the layout does not jump when the ranks start."""
    ranks = len(snapshot.ranks)
    if snapshot.server is not None:
        args = snapshot.server.args
        ranks = max(ranks, args.tp * args.pp // max(1, args.nnodes))
    return {"1": 7, "2": 2 + ranks, "3": 4 + ranks, "5": 4}.get(number, 0)
