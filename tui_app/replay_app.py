"""The dashboard on a recording: the same screens, with keys that move in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from sgmon.recording.codec import CUT
from sgmon.settings import Settings
from tui_app.app import SgmonApp
from tui_app.messages import SnapshotArrived

if TYPE_CHECKING:
    from sgmon.watch.engine import Engine

SEEK_S = 10.0
_OURS = frozenset({"play", "step", "speed", "seek", "change"})


class ReplayApp(SgmonApp):
    """Its keys come before those of the panels, but not while something is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "pause, play on", priority=True, id="replay.play"),
        Binding("full_stop", "step", "one recorded event further", priority=True, id="replay.step"),
        Binding("plus,equals_sign", "speed(True)", "faster", priority=True, id="replay.faster"),
        Binding("minus", "speed(False)", "slower", priority=True, id="replay.slower"),
        Binding("left", "seek(-1)", "10 s back", priority=True, id="replay.back"),
        Binding("right", "seek(1)", "10 s on", priority=True, id="replay.on"),
        Binding("left_square_bracket", "change(-1)", "verdict change before", priority=True, id="replay.before"),
        Binding("right_square_bracket", "change(1)", "next verdict change", priority=True, id="replay.next"),
    ]

    def __init__(self, engine: Engine, settings: Settings | None = None) -> None:
        assert engine.replay is not None
        super().__init__(engine, settings)
        self._engine, self._replay = engine, engine.replay
        self._has_said_cut = False

    def help_sections(self) -> list[tuple[str, Sequence[BindingType]]]:
        first, *rest = super().help_sections()
        return [first, ("in a replay", ReplayApp.BINDINGS), *rest]

    def on_snapshot_arrived(self, message: SnapshotArrived) -> None:
        """Beside what the application does with it."""
        if self._replay.is_cut and not self._has_said_cut:
            self._has_said_cut = True
            self.notify(f"the recording {CUT}", severity="warning", markup=False, timeout=20)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not (action in _OURS and self._typing())

    def _typing(self) -> bool:
        focused = self.focused
        prompt = getattr(focused, "prompt", None)
        return isinstance(focused, Input) or bool(prompt is not None and prompt.open)

    def action_play(self) -> None:
        self._replay.pause()

    def action_step(self) -> None:
        self._replay.step()

    def action_speed(self, up: bool) -> None:
        self._replay.faster(up)

    def action_seek(self, way: int) -> None:
        self._replay.seek_by(way * SEEK_S)

    def action_change(self, way: int) -> None:
        if way > 0:
            self._replay.to_next_change()
        else:
            self._engine.to_previous_change()
