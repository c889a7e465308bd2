"""sglang/srt/managers/detokenizer_manager.py: imports, takes its title, waits."""

from __future__ import annotations

import select
import socket

import setproctitle

from sgmon.demo import console
from sgmon.demo.lifeline import die_with_parent
from sgmon.demo.play import Play
from sgmon.demo.wording import child_warnings


class DetokenizerManager:
    """Waits for tokens on a socket; the demo never sends any."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()

    def event_loop(self) -> None:
        waiting = select.poll()
        waiting.register(self._ours, select.POLLIN)
        while True:
            waiting.poll()


def run_detokenizer_process(play: Play) -> None:
    console.raw(child_warnings(play))
    setproctitle.setproctitle("sglang::detokenizer")
    die_with_parent()
    DetokenizerManager().event_loop()
