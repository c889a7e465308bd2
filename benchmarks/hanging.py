"""The dashboard on a live server whose probes all stop answering: each answers some times, then blocks for ever.

python -m benchmarks.hanging PID [ANSWERS]
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from sgmon.collect.probes.base import Probe, Watched
from sgmon.collect.source import LiveSource, live_probes
from sgmon.settings import Settings


def hanging_probes(answers: int) -> Callable[[Watched, LiveSource], list[Probe]]:
    """All live probes, and each blocks in its call after so many."""

    def make(watched: Watched, source: LiveSource) -> list[Probe]:
        probes = live_probes(watched)
        for probe in probes:
            probe.read = _blocking(probe.read, answers)  # type: ignore[method-assign]
        return probes

    return make


def _blocking(read, answers: int):
    left = [answers]

    def blocked():
        if not left[0]:
            threading.Event().wait()
        left[0] -= 1
        return read()

    return blocked


def main() -> int:
    from sgmon.commands.live import live_engine
    from tui_app.app import SgmonApp

    settings = Settings(pid=int(sys.argv[1]))
    answers = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    source = LiveSource(settings, probes=hanging_probes(answers))
    app = SgmonApp(None, settings, lambda say: live_engine(settings, source=source, say=say))
    app.run()
    app.session.engine.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
