"""Which keys the last row of the overview names. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from widgets.hints import Hint

if TYPE_CHECKING:
    from sgmon.model import Snapshot

_ALWAYS = (("v", "why"), ("space", "freeze"), ("?", "help"), ("q", "quit"))
_REPLAY = (
    ("space", "pause"),
    (".", "step"),
    ("+-", "speed"),
    ("←→", "10 s"),
    ("[]", "change"),
    ("?", "help"),
    ("q", "quit"),
)
#: while there is no server
BEFORE = (("?", "help"), (":", "commands"), ("q", "quit"))
#: after a first ``q``
LEAVING = (("q", "again quits; the watch ends"), ("esc", "stay"))
LEAVING_REPLAY = (("q", "again quits"), ("esc", "stay"))


def has_only_said(snapshot: Snapshot) -> bool:
    """Whether a command of ``sgmon run`` ended before it was a server and left words: its log says why."""
    return snapshot.server is None and snapshot.verdict.rule == "command-ended" and bool(snapshot.log.size)


def panel_hints(
    own: Sequence[Hint], snapshot: Snapshot, *, is_zoomed: bool, has_ended: bool
) -> tuple[Sequence[Hint], Sequence[Hint]]:
    """(keys that depend on what is shown, keys that always work), from those of the focused panel."""
    hints = list(own)
    if has_ended:  # nothing is left to take a stack of
        hints = [hint for hint in hints if hint[0] not in ("d", "D")]
    if any(step.key == "o" for step in snapshot.verdict.next):
        hints.insert(0, ("o", "first error"))
    if len(snapshot.candidates) > 1:
        hints.insert(0, ("s", f"{len(snapshot.candidates)} servers"))
    hints.append(("z", "unzoom" if is_zoomed else "zoom"))
    return hints, _REPLAY if snapshot.replay else _ALWAYS
