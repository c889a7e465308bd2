"""The log as vLLM 0.31 and later write it: only its own loggers have the prefix, all goes to standard output."""

from __future__ import annotations

import os
import time

_name = "APIServer"


def set_name(name: str) -> None:
    """What stands in the prefix of every record of this process."""
    global _name
    _name = name


def info(place: str, message: str) -> None:
    """A record. place: file and line that write it, as in 0.32.0."""
    stamp = time.strftime("%m-%d %H:%M:%S")
    os.write(1, f"({_name} pid={os.getpid()}) INFO {stamp} [{place}] {message}\n".encode())


def uvicorn(message: str) -> None:
    """uvicorn's lines have neither prefix nor date."""
    os.write(1, f"INFO:     {message}\n".encode())
