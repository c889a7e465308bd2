"""Show a hand-made snapshot in a real terminal: python -m tests.ui.preview stuck"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

from msgspec.structs import replace

from sgmon.settings import Settings
from tests.ui import fakes
from tui_app.app import SgmonApp
from tui_app.exit_summary import exit_summary


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "stuck"
    options = set(sys.argv[2:])
    folder = tempfile.TemporaryDirectory()
    text = fakes.log_of(Path(folder.name) / "sglang-30000.log", fakes.log_rows())
    engine = fakes.FakeEngine(getattr(fakes, name)(), log_text=text)
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.5):
            engine.give(replace(engine.snapshot, t=engine.snapshot.t + 0.5))

    threading.Thread(target=tick, daemon=True).start()
    app = SgmonApp(engine, Settings(ascii="--ascii" in options))
    app.run(mouse="--mouse" in options)
    stop.set()
    print("\n".join(exit_summary(engine.snapshot)))
    sys.exit(app.return_code)


if __name__ == "__main__":
    main()
