"""vllm/v1/engine/utils.py: starts the engine and waits for it without a limit."""

from __future__ import annotations

import multiprocessing as mp
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from sgmon.demo.play import Play
from sgmon.demo.played.vllm.v1.engine.core import EngineCoreProc


class EngineDeadError(Exception):
    """The engine ended before it was ready."""


def launch_core_engines(play: Play) -> SpawnProcess:
    spawn = mp.get_context("spawn")
    reading, writing = spawn.Pipe(duplex=False)
    process = spawn.Process(target=EngineCoreProc.run_engine_core, args=(play, writing))
    process.start()
    writing.close()
    wait_for_engine_startup(process, reading)
    return process


def wait_for_engine_startup(process: SpawnProcess, ready: Connection) -> None:
    while not ready.poll(10.0):
        if not process.is_alive():
            raise EngineDeadError
    ready.recv()
