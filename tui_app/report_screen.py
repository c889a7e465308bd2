"""``ctrl+s``: what a report would hold and what was masked, before it is written."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from sgmon.model import Snapshot
from sgmon.text import clean
from tui_app.lines_screen import LinesScreen
from widgets.line import Line, wrap

if TYPE_CHECKING:
    from sgmon.export.bundle import Bundle


class ReportScreen(LinesScreen):
    """The bundle is made in a thread that may be left behind; enter writes it."""

    STEM = "report"
    HINTS = (("enter", "write it"), ("c", "copy"))
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "write", "write the report", id="report.write")]

    def __init__(self) -> None:
        super().__init__()
        self._bundle: Bundle | None = None
        self._said = "making the report ..."

    def on_mount(self) -> None:
        super().on_mount()
        threading.Thread(target=self._make, name="report", daemon=True).start()

    def title_line(self, snapshot: Snapshot) -> Line:
        return ((" report ", "title-focus"), ("  one file for a bug report; nothing is written yet", "dim"))

    def page_lines(self, snapshot: Snapshot, width: int) -> Sequence[Line]:
        rows: list[Line] = [((f" {clean(self._said, 400)}", "strong"),), ()]
        if self._bundle is not None:
            for line in self._bundle.words():
                rows += wrap(((f" {clean(line, 400)}", ""),), width, indent=3)
            rows += [(), ((" Hashed paths, no log: sgmon report --paths=hash --no-log", "dim"),)]
        return rows

    def action_write(self) -> None:
        if self._bundle is None:
            return
        from sgmon.commands.bundling import write

        try:
            path = write(self._bundle, None)
        except OSError as err:
            self._say(f"cannot write {err.filename}: {err.strerror}")
            return
        self.app.notify(f"report: {path}", markup=False, timeout=12)
        self.dismiss()

    def _make(self) -> None:
        """In a thread of its own."""
        from sgmon.commands.bundling import BundleError, make

        try:
            bundle = make(self.session.engine, root=self.session.settings.proc_root, made_by="ctrl+s")  # type: ignore[arg-type]
        except BundleError as err:
            self.app.call_later(self._say, str(err))
            return
        self.app.call_later(self._ready, bundle)

    def _ready(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._say(f"{bundle.name}: enter writes it here, q leaves it")

    def _say(self, words: str) -> None:
        self._said = words
        if self.is_attached:
            self.receive(self.session.latest)
