"""The dashboard on a live, simulated server; each snapshot adds a byte to a file: python -m tests.ui.collecting FILE"""

from __future__ import annotations

import sys

from sgmon import demo
from sgmon.collect.source import LiveSource
from sgmon.commands.live import live_engine
from sgmon.settings import Settings
from tui_app.app import SgmonApp


def main() -> None:
    with demo.start("healthy", tp=2) as server, open(sys.argv[1], "ab", buffering=0) as file:
        settings = Settings(pid=server.pid, port=server.port, simulated_gpus=str(server.gpus))
        engine = live_engine(settings, source=LiveSource(settings), say=lambda words: None)
        engine.subscribe(lambda snapshot: file.write(b"."))
        engine.start()
        SgmonApp(engine, settings).run(mouse=False)
        engine.stop()


if __name__ == "__main__":
    main()
