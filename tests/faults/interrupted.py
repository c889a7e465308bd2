"""sgmon asked to end while its main thread takes a reading out of the queue: python -m tests.faults.interrupted wait ..."""

from __future__ import annotations

import queue
import signal
import sys
import threading
from typing import Any

from tui_app.cli import main

_take = queue.Queue._get  # called with the queue's lock held


def _take_and_be_asked_to_end(waiting: queue.Queue[Any]) -> Any:
    if threading.current_thread() is threading.main_thread():
        signal.raise_signal(signal.SIGTERM)
    return _take(waiting)


if __name__ == "__main__":
    queue.Queue._get = _take_and_be_asked_to_end  # type: ignore[method-assign]
    sys.exit(main())
