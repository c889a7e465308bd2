"""The import phase: seconds of real module imports, in a process that has no title yet.

A real child imports torch, transformers and sglang for 9-14 s (H200) or 15-70 s (2 CPU cores): R at full CPU, rchar
growing, py-spy shows importlib. Here small standard modules are executed again and again with pauses between, so
that eight ranks fit on a small machine.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import sys
import time

from sgmon.demo.play import Play

#: by the name under which the main module runs: in the launcher, and again in every spawned child
_SECONDS = {"__main__": 3.0, "__mp_main__": 5.5}

#: harmless to execute twice, and big enough to cost some milliseconds each
_MODULES = (
    "argparse", "configparser", "csv", "difflib", "optparse", "plistlib", "tarfile", "zipfile",
    "ftplib", "html.parser", "imaplib", "mailbox", "pydoc_data.topics", "smtplib", "statistics",
)  # fmt: skip


def import_for_a_while(module: str) -> None:
    parent = os.getppid()
    speed = Play.from_environment().speed
    until = time.monotonic() + _SECONDS[module] * random.uniform(0.9, 1.1) / speed
    while time.monotonic() < until:
        for name in _MODULES:
            _import_again(name)
            time.sleep(0.03)
            if os.getppid() != parent:
                os._exit(1)  # the order to die with the parent comes with the title only
            if time.monotonic() >= until:
                return


def _import_again(name: str) -> None:
    """The module is executed from its file as at its first import; sys.modules stays as it was."""
    before = sys.modules.pop(name, None)
    try:
        importlib.import_module(name)
    finally:
        if before is not None:
            sys.modules[name] = before
        else:
            sys.modules.pop(name, None)
