"""How a server that is up ends: on SIGTERM it drains first; when a child dies, it kills all and itself."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

from sgmon.demo import console
from sgmon.demo.played.sglang.srt.entrypoints.engine import kill_process_tree
from sgmon.demo.played.uvicorn.server import Server, State


def handle_signals(state: State, server: Server) -> None:
    def on_sigterm(_signum: int, _frame: FrameType | None) -> None:
        if state.status != "ShuttingDown":
            state.status = "ShuttingDown"
            console.info("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
            threading.Thread(target=sigterm_watchdog, args=(state, server), daemon=True).start()

    def on_sigquit(signum: int, frame: FrameType | None) -> None:
        console.info(f"SIGQUIT received. {signum=}, {frame=}. It usually means one child failed.")
        kill_process_tree(state.play, include_parent=True)

    signal.signal(signal.SIGTERM, on_sigterm)
    signal.signal(signal.SIGQUIT, on_sigquit)
    if state.play.polls_children:
        threading.Thread(target=subprocess_watchdog, args=(state,), daemon=True, name="subprocess-watchdog").start()


def sigterm_watchdog(state: State, server: Server) -> None:
    """/health says 503 meanwhile; 0.5.23 then ends with 0, older ones kill themselves (137)."""
    time.sleep(3.0 / state.play.speed)
    console.info("Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
    kill_process_tree(state.play, include_parent=state.play.release() < (0, 5, 23))
    server.stop()


def shut_down(state: State) -> None:
    console.uvicorn("INFO", "Shutting down")
    console.uvicorn("INFO", "Waiting for application shutdown.")
    console.uvicorn("INFO", "Application shutdown complete.")
    console.uvicorn("INFO", f"Finished server process [{state.pid}]")
    kill_process_tree(state.play, include_parent=False)


def subprocess_watchdog(state: State) -> None:
    """Starts when all ranks are ready; looks once a second."""
    names = [f"scheduler_{rank}" for rank in range(state.play.local_ranks)] + ["detokenizer"]
    while state.status != "ShuttingDown":
        for name, proc in zip(names, state.engine.procs, strict=True):
            if not proc.is_alive():
                console.info(
                    f"Subprocess {name} (pid={proc.pid}) crashed with exit code {proc.exitcode}. "
                    "Triggering SIGQUIT for cleanup..."
                )
                os.kill(state.pid, signal.SIGQUIT)
                return
        time.sleep(1.0)
