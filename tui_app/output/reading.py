"""Reads what the terminal sends, and sleeps until something comes.

Textual's own thread wakes up ten times a second, to see whether it is to end and whether an Esc stood alone: 0.05 CPU
seconds a minute, which do not become fewer however rarely the screen changes.
"""

from __future__ import annotations

import errno
import os
import select
import threading
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable

from textual._parser import ParseEOF, ParseError
from textual._xterm_parser import XTermParser
from textual.message import Message

_ESC_S = 0.1  # how often an unfinished sequence is looked at, as Textual does
_MOST_BYTES = 4096


class WakingEvent(threading.Event):
    """An event that also makes a descriptor readable while it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.fd, self._end = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._end, False)

    def set(self) -> None:
        super().set()
        try:
            os.write(self._end, b"\0")
        except BlockingIOError:  # it is readable since long
            pass

    def clear(self) -> None:
        super().clear()
        try:
            while os.read(self.fd, 64):
                pass
        except BlockingIOError:
            pass


def read_terminal(fd: int, stop: WakingEvent, process: Callable[[Message], None], debug: bool) -> bool:
    """Hand every message of the terminal to ``process`` until ``stop`` is set; False when the terminal is gone.

    A terminal that was closed says so in one of two ways, whichever comes first: an error (EIO) or an end of input.
    """
    parser = XTermParser(debug)
    decode = getincrementaldecoder("utf-8")("replace").decode

    def take(messages: Iterable[Message]) -> None:
        for message in messages:
            process(message)

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(stop.fd, select.POLLIN)
    while not stop.is_set():
        waits = parser._timeout_time is not None
        ready = [one for one, _ in poll.poll(_ESC_S * 1000 if waits else None)]
        if fd in ready:
            try:
                data = os.read(fd, _MOST_BYTES)
            except OSError as err:
                if err.errno != errno.EIO:
                    raise
                data = b""
            if not data:
                return False
            take(parser.feed(text) if (text := decode(data)) else ())
        take(parser.tick())
    try:
        for _ in parser.feed(""):
            pass
    except (ParseError, ParseEOF, EOFError):
        pass
    return True
