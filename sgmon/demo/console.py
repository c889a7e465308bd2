"""The log as SGLang writes it: one write(2) a record to stderr, access lines to stdout (research: 0.5.23)."""

from __future__ import annotations

import os
import time

_prefix = ""


def set_prefix(prefix: str) -> None:
    """ " TP0": what stands behind the time in every record of this process."""
    global _prefix
    _prefix = prefix


def _stamp() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def info(message: str) -> None:
    """A record of an SGLang logger; it bears no level."""
    os.write(2, f"[{_stamp()}{_prefix}] {message}\n".encode())


def raw(text: str) -> None:
    """Text as it stands: warnings, bars, tracebacks."""
    os.write(2, text.encode())


def uvicorn(level: str, message: str) -> None:
    os.write(2, f"[{_stamp()}] {level + ':':<9} {message}\n".encode())


def access(client: str, request: str, status: str) -> None:
    os.write(1, f'[{_stamp()}] INFO:     {client} - "{request}" {status}\n'.encode())
