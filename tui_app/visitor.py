"""``python -m tui_app.visitor SETTINGS``: the dashboard of one visitor of ``sgmon serve``.

textual-serve starts it, speaks to it through pipes and ends it with the connection. It writes no file: no recording,
no history, so that it knows no usual durations either. SETTINGS is ``sgmon.settings.Settings`` as JSON.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from sgmon.settings import Settings

if TYPE_CHECKING:
    from tui_app.session import EngineLike

_PR_SET_PDEATHSIG = 1
FPS = "15"


def main(words: list[str]) -> int:
    """Run until the connection ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    settings = msgspec.json.decode(words[0], type=Settings)
    os.environ.update(TEXTUAL_ANIMATIONS="none", TEXTUAL_SMOOTH_SCROLL="0", TEXTUAL_FPS=FPS)
    from tui_app.read_only import ReadOnlyApp

    app = ReadOnlyApp(None, settings, lambda say: make_engine(settings, say))
    app.run()
    app.session.engine.stop()
    if app.refusal:
        print(f"sgmon: {app.refusal}", file=sys.stderr)
    return app.return_code or 0


def make_engine(settings: Settings, say: Callable[[str], None]) -> EngineLike:
    """An engine that takes no stacks by itself and keeps nothing."""
    from sgmon.collect.source import LiveSource
    from sgmon.commands.cause_book import read_user_causes
    from sgmon.watch.engine import PUBLISH_S, Engine
    from tui_app.read_only import ReadOnlyEngine

    causes, mistake = read_user_causes()
    if mistake:
        say(mistake)
    engine = Engine(
        LiveSource(settings),
        auto_evidence=False,
        publish_s=PUBLISH_S * max(1.0, settings.interval_s),
        user_causes=causes,
    )
    return ReadOnlyEngine(engine)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
