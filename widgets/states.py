"""How each verdict state looks: a glyph, a word and a style. Never a colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sgmon.text import clean

if TYPE_CHECKING:
    from sgmon.model import Process


#: a sign of activity -> its name on the screen, where that is not the name of the field
_SIGNALS = {"gpu_memory": "GPU mem"}


def signal_label(signal: str, cells: int) -> str:
    """What a piece of evidence or a sign of activity is called, on each page alike."""
    return _SIGNALS.get(signal) or clean(signal, cells)


class StateStyle(NamedTuple):
    """How a state is shown."""

    glyph: str
    word: str
    style: str  # "ok" | "warn" | "bad" | "info" | "idle"

    @property
    def badge(self) -> str:
        return f"badge-{self.style}"

    @property
    def text_style(self) -> str:
        return "dim" if self.style == "idle" else self.style


STATE_STYLES: dict[str, StateStyle] = {
    "waiting": StateStyle("○", "WAITING", "info"),
    "progressing": StateStyle("▶", "PROGRESSING", "ok"),
    "slow": StateStyle("▶", "SLOW", "warn"),
    "will-fail": StateStyle("▲", "WILL FAIL", "warn"),
    "waiting-by-design": StateStyle("○", "WAITING (EXPECTED)", "info"),
    "suspect": StateStyle("◐", "SUSPECT", "warn"),
    "stalled": StateStyle("■", "STALLED", "bad"),
    "stopped": StateStyle("■", "STOPPED", "bad"),
    "crashed": StateStyle("✗", "CRASHED", "bad"),
    "ended": StateStyle("□", "ENDED", "idle"),
    "ready": StateStyle("✓", "READY", "ok"),
    "unhealthy": StateStyle("✗", "UNHEALTHY", "bad"),
    "unknown": StateStyle("?", "UNKNOWN", "warn"),
    "unfinished": StateStyle("◐", "UNFINISHED", "info"),
}


def state_style(state: str) -> StateStyle:
    """The look of a state; an unknown word stays readable."""
    return STATE_STYLES.get(state) or StateStyle("?", state.upper() or "?", "warn")


#: /proc state letter -> word, style. A stopped or dead process is loud.
PROCESS_WORDS: dict[str, tuple[str, str]] = {
    "R": ("run", "ok"),
    "S": ("sleep", ""),
    "D": ("disk", "info"),
    "I": ("idle", "dim"),
    "Z": ("ZOMBIE", "bad"),
    "X": ("dead", "bad"),
}

_HALTED_WORDS = {"stopped": "PAUSED", "frozen": "FROZEN", "traced": "TRACED"}


def process_word(process: Process) -> tuple[str, str]:
    """The state of a process in one word: "sleep", "STOPPED", "exit 137"."""
    if process.gone:
        if process.exit_signal is not None:
            return f"signal {process.exit_signal}", "bad"
        if process.exit_code is not None:
            return f"exit {process.exit_code}", "bad" if process.exit_code else "warn"
        return "gone", "bad"
    if process.halted:
        return _HALTED_WORDS[process.halted], "bad"
    return PROCESS_WORDS.get(process.state, (process.state or "?", "warn"))
