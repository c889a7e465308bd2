"""vllm/distributed/device_communicators/shm_broadcast.py: the queue between an engine and a worker, here a pipe."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from typing import Any

from sgmon.demo.play import Play
from sgmon.demo.played.vllm.logger import info

#: VLLM_RINGBUFFER_WARNING_INTERVAL
_NOTICE_S = 60.0
_POLL_S = 0.5


class MessageQueue:
    """One direction is enough for the play: both ends read and write the same pipe."""

    def __init__(self, play: Play, pipe: Connection) -> None:
        self._play, self._pipe = play, pipe

    def enqueue(self, message: Any) -> None:
        self._pipe.send(message)

    def wait_until_ready(self) -> None:
        """Until the other end is there, without a limit."""
        while not self._pipe.poll(_POLL_S):
            pass
        self._pipe.recv()

    def dequeue(self, *, notice: bool = False) -> Any:
        self.acquire_read(notice)
        return self._pipe.recv()

    def acquire_read(self, notice: bool) -> None:
        """notice: it says every minute that it still waits; a worker does not."""
        noticed = time.monotonic()
        while not self._pipe.poll(_POLL_S):
            if notice and time.monotonic() > noticed + _NOTICE_S / self._play.speed:
                noticed = time.monotonic()
                info(
                    "shm_broadcast.py:871",
                    "No available shared memory broadcast block found in 60 seconds. This typically happens when "
                    "some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv "
                    "cache quantization).",
                )
