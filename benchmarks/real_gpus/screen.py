"""The dashboard beside a start, in a terminal of 120x40; all that it sends is kept as an asciinema file (version 2)."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.terminal import ANSWERS

COLUMNS, ROWS = 120, 40


class Screen:
    """``process`` is the dashboard; its first second is ``began`` (wall clock), the zero of the file's times."""

    def __init__(self, words: Sequence[str], env: dict[str, str], folder: Path, path: Path) -> None:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        env = {**env, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.began = time.time()
        self.process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder, start_new_session=True
        )
        os.close(slave)
        self._master = master
        self._thread = threading.Thread(target=self._keep, args=(path,), daemon=True)
        self._thread.start()

    def press(self, keys: str) -> None:
        """What a person types."""
        try:
            os.write(self._master, keys.encode())
        except OSError:
            pass

    def join(self) -> None:
        """Wait until all that was sent is in the file."""
        self._thread.join(10)

    def _keep(self, path: Path) -> None:
        start, decoder = time.monotonic(), codecs.getincrementaldecoder("utf-8")("replace")
        with path.open("w") as file:
            header = {"version": 2, "width": COLUMNS, "height": ROWS, "timestamp": int(self.began)}
            file.write(json.dumps(header) + "\n")
            while True:
                try:
                    data = os.read(self._master, 1 << 16)
                except OSError:  # EIO: the program has ended
                    break
                if not data:
                    break
                for asked, answer in ANSWERS.items():
                    if asked in data:
                        os.write(self._master, answer)
                text = decoder.decode(data)
                file.write(json.dumps([round(time.monotonic() - start, 3), "o", text]) + "\n")
                file.flush()
        os.close(self._master)
