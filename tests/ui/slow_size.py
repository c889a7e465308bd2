"""The preview; who asks for the size of the terminal while that is 118 wide gets the answer when it is another one:
python -m tests.ui.slow_size stuck FILE, which is made when that is asked."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.ui import preview


def main() -> None:
    ask = os.get_terminal_size

    def ask_slowly(fd: int) -> os.terminal_size:
        size = ask(fd)
        while size.columns == 118 and ask(fd) == size:
            Path(sys.argv[2]).touch()
            time.sleep(0.01)  # a signal's handler runs in here
        return size

    os.get_terminal_size = ask_slowly
    preview.main()


if __name__ == "__main__":
    main()
