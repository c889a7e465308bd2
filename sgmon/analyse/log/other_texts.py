"""What a text is when it is no server's log: a router's, a launcher's, stacks that py-spy printed."""

from __future__ import annotations

import re

from msgspec.structs import replace

from sgmon.analyse.stacks.phase import phase_of_frames
from sgmon.model.log import LogState
from sgmon.model.stacks import Frame
from sgmon.patterns import regex
from sgmon.servers import registry
from sgmon.servers.family import LogRules

_THREAD = regex(r"^Thread (?:0x)?[0-9A-Fa-f]+ \((?:idle|active|active\+gil)\)(?:: \"(?P<name>[^\"]*)\")?", re.M)
_FRAME = regex(r"^\s+(?P<function>\S+) \((?P<file>[^():]+)(?::(?P<line>\d+))?\)$", re.M)


def named(state: LogState, text: str, rules: LogRules) -> LogState:
    """``state`` with what its text is, where no line of a start is in it. text: its beginning."""
    if _THREAD.search(text) and _FRAME.search(text) and not state.args and state.outcome != "crashed":
        return _stacks(state, text, rules)
    told = any(complaint.grade == "consequence" for complaint in state.complaints)  # the server's own words
    if told or state.milestones or state.args is not None or rules.fatal_header.search(text):
        return state
    for other in rules.others:
        if other.pattern.search(text):
            # of two that end at one place the longer: "timeout 600s waiting for workers" waits no more
            said = [(m.end(), -m.start(), words) for pattern, words in other.stages for m in pattern.finditer(text)]
            return replace(state, what=other.label, doing=max(said)[2] if said else "")
    return state


def _stacks(state: LogState, text: str, rules: LogRules) -> LogState:
    """A py-spy dump: the phase that its main threads prove, the earliest of them."""
    family = registry.get(rules.family)
    phases: list[str] = []
    inner: list[str] = []
    heads = list(_THREAD.finditer(text))
    for index, head in enumerate(heads):
        if head["name"] not in ("MainThread", None):
            continue
        end = heads[index + 1].start() if index + 1 < len(heads) else len(text)
        frames = [
            Frame(match["function"], match["file"], int(match["line"] or 0))
            for match in _FRAME.finditer(text, head.end(), end)
        ]
        phase = phase_of_frames(frames, family.stacks)
        phases += [phase] * bool(phase)
        inner += [frame.function for frame in frames[:1]]
    phase = min(phases, key=family.phases.order, default="")
    where = f"the main thread is in {inner[0]}" if inner else ""
    return replace(state, what="stacks that py-spy printed", doing=where, phase=state.phase or phase)
