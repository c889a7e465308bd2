"""The keys of the log panel. The screen's own (1-5, d, D, q, ?, x, z, space) are not among them."""

from __future__ import annotations

from textual.binding import Binding

HINTS: tuple[tuple[str, str], ...] = (
    ("/", "search"),
    ("n", "next"),
    ("r", "rank"),
    ("e", "error"),
    ("m", "milestone"),
    ("l", "wrap"),
    ("f", "noise"),
    ("G", "follow"),
)

#: ids of the keys that other panels have no use for
FROM_ANY_PANEL = frozenset(
    f"log.{name}"
    for name in (
        *("pageup", "pagedown", "search", "next", "previous", "only", "inverse", "rank", "rank_back", "node"),
        *(
            "node_back",
            "error",
            "error_back",
            "warning",
            "warning_back",
            "milestone",
            "milestone_back",
            "wrap",
            "clock",
            "noise",
            "every",
        ),
    )
)

BINDINGS: list[Binding] = [
    Binding("pageup", "page(-1)", "a page up", show=False, id="log.pageup"),
    Binding("pagedown", "page(1)", "a page down", show=False, id="log.pagedown"),
    Binding("g,home", "first", "first line", show=False, id="log.first"),
    Binding("G,end", "follow", "last line, and follow", show=False, id="log.follow"),
    Binding("left,shift+left", "sideways(-16)", "to the left", show=False, id="log.left"),
    Binding("right,shift+right", "sideways(16)", "to the right", show=False, id="log.right"),
    Binding("slash", "search", "search", show=False, id="log.search"),
    Binding("n", "hit(1)", "next hit", show=False, id="log.next"),
    Binding("N", "hit(-1)", "hit before", show=False, id="log.previous"),
    Binding("ampersand", "only_hits", "only lines that hit", show=False, id="log.only"),
    Binding("exclamation_mark", "inverse", "only lines that do not hit", show=False, id="log.inverse"),
    Binding("r", "rank(1)", "only the next rank", show=False, id="log.rank"),
    Binding("R", "rank(-1)", "only the rank before", show=False, id="log.rank_back"),
    Binding("a", "node(1)", "only the next node", show=False, id="log.node"),
    Binding("A", "node(-1)", "only the node before", show=False, id="log.node_back"),
    Binding("e", "jump('error', 1)", "next error", show=False, id="log.error"),
    Binding("E", "jump('error', -1)", "error before", show=False, id="log.error_back"),
    Binding("w", "jump('warning', 1)", "next warning", show=False, id="log.warning"),
    Binding("W", "jump('warning', -1)", "warning before", show=False, id="log.warning_back"),
    Binding("m", "jump('milestone', 1)", "next milestone", show=False, id="log.milestone"),
    Binding("comma", "jump('milestone', -1)", "milestone before", show=False, id="log.milestone_back"),
    Binding("l", "wrap", "wrap long lines", show=False, id="log.wrap"),
    Binding("t", "clock", "clock, time since the start, or none", show=False, id="log.clock"),
    Binding("f", "noise", "known harmless and access lines", show=False, id="log.noise"),
    Binding("u", "every_line", "fold nothing", show=False, id="log.every"),
    Binding("enter", "expand", "the whole line; unfold known harmless lines", show=False, id="log.expand"),
    Binding("c", "copy", "copy the line", show=False, id="log.copy"),
    Binding("escape", "clear", "end search and filter", show=False, id="log.clear"),
]
