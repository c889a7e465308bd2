"""What a snapshot has to say once: a file was saved, a recording cannot be written. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgmon.text import clean

if TYPE_CHECKING:
    from sgmon.model import Snapshot

#: our own keeping of things; the trouble of other probes stands in their panels
_KEEPING = ("recording", "flight", "history")


def notices(old: Snapshot, new: Snapshot) -> list[tuple[str, str]]:
    """(words, severity) of what is new."""
    said = [(f"recording saved: {path}", "information") for path in new.saved if path not in old.saved]
    before = {status.name: status.error for status in old.probes}
    for status in new.probes:
        if status.name in _KEEPING and status.error != before.get(status.name, ""):
            words = f"{status.error}. {status.remedy}" if status.error else f"the {status.name} is written again"
            said.append((clean(words, 300), "warning" if status.error else "information"))
    return said
