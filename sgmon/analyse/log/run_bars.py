"""The progress bars of one start: which milestone each shows, how far it is, when it last moved."""

from __future__ import annotations

from msgspec import Struct, field

from sgmon.analyse.log.bars import Frame
from sgmon.analyse.log.ranks import Milestones
from sgmon.analyse.log.writers import Writers
from sgmon.model.log import Bar, Milestone
from sgmon.text import safe

_GRAPH_PHASES = ("graphs", "draft_graphs")
_WEIGHT_PHASES = ("weights", "draft_weights")
#: phase of a bar's milestone
_PHASES = {"weights_progress": "weights", "graph_progress": "graphs", "weights_quant": "weights"}


class RunBars(Struct):
    """Bars by the name of their milestone. milestones, writers: the start's own."""

    milestones: Milestones
    writers: Writers | None
    known: dict[str, Bar] = field(default_factory=dict)

    def take(self, name: str, frame: Frame, number: int, seen_t: float | None, final: bool) -> bool:
        """Keep the newest count; whether it differs from the one before."""
        known = self.known.get(name)
        moved = known is None or (known.done, known.total) != (frame.done, frame.total)
        rank = self._rank(name) if final else known.rank if known else None
        self.known[name] = Bar(
            name,
            frame.done,
            frame.total,
            number,
            safe(frame.text, 200),
            rank or "",
            seen_t,
            known.moved_t if known is not None and not moved else seen_t,
            frame.total > 0 and frame.done >= frame.total,
        )
        return moved

    def pass_milestone(self, name: str, number: int, t: float | None, seen_t: float | None) -> None:
        """Note the milestone of a bar whose line is whole."""
        draft, bare = "draft_" if name.startswith("draft_") else "", name.removeprefix("draft_")
        phase, rank = _PHASES.get(bare, ""), self._rank(name)
        shown = "weights_100" if bare == "weights_progress" and self.known[name].finished else bare
        where = draft + phase if phase else ""
        self.milestones.bar(Milestone(draft + shown, "progress", where, number, rank or "", t, seen_t), rank)

    def _rank(self, name: str) -> str | None:
        owner = self.writers.owner if self.writers is not None else None
        return owner if owner is not None else self.milestones.bar_rank(name)

    def name_of(self, frame: Frame) -> str:
        """The milestone that a bar shows; "" for a bar of something else."""
        name = frame.name
        phase = self.milestones.phase
        if not name:
            if frame.described:
                return ""
            if phase in _GRAPH_PHASES or "graph_begin" in self.milestones.seen:
                name = "graph_progress"
            elif phase in _WEIGHT_PHASES:
                name = "weights_progress" if "weights_100" not in self.milestones.seen else ""
            if not name:
                return ""
        if name == "weights_progress" and self.milestones.drafting:
            return "draft_weights_progress"
        if name == "graph_progress" and phase == "draft_graphs":
            return "draft_graph_progress"
        return name
