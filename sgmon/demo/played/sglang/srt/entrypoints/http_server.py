"""sglang/srt/entrypoints/http_server.py: the port opens last, and /health says 503 until the warm-up is over."""

from __future__ import annotations

import signal
import sys
import threading

from sgmon.demo import console
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.entrypoints.ending import handle_signals, shut_down
from sgmon.demo.played.sglang.srt.entrypoints.engine import Engine, SchedulerDiedError, kill_process_tree
from sgmon.demo.played.sglang.srt.entrypoints.http_warmup import _execute_server_warmup
from sgmon.demo.played.uvicorn import server as uvicorn
from sgmon.demo.wording import launcher_preface, server_args_line, transport_lines


def main(play: Play) -> None:
    """The part of sglang/launch_server.py behind ``if __name__ == "__main__"``."""
    console.raw(launcher_preface(play))
    for line in transport_lines(play):
        console.info(line)
    play.pause(0.6)
    console.info("Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit")
    console.info(server_args_line(play))
    try:
        run_server(play)
    except SchedulerDiedError as error:
        kill_process_tree(play, include_parent=False)
        console.raw(str(error))
        sys.exit(1)


def run_server(play: Play) -> None:
    launch_server(play)


def launch_server(play: Play) -> None:
    engine = Engine(play)
    engine._launch_subprocesses()
    _setup_and_run_http_server(play, engine)


def _setup_and_run_http_server(play: Play, engine: Engine) -> None:
    """The warm-up thread starts before the bind; with the port taken, it talks to whoever has it."""
    state = uvicorn.State(play, engine)
    console.uvicorn("INFO", f"Started server process [{state.pid}]")
    console.uvicorn("INFO", "Waiting for application startup.")
    play.pause(0.3)
    warmup = threading.Thread(target=_wait_and_warmup, args=(state,), name="Thread-1 (_wait_and_warmup)")
    warmup.start()
    console.uvicorn("INFO", "Application startup complete.")
    try:
        server = uvicorn.Server(state)
    except OSError as error:
        console.uvicorn(
            "ERROR",
            f"[Errno {error.errno}] error while attempting to bind on address "
            f"('127.0.0.1', {play.port}): address already in use",
        )
        console.uvicorn("INFO", "Waiting for application shutdown.")
        lifespan(warmup)
        console.uvicorn("INFO", "Application shutdown complete.")
        kill_process_tree(play, include_parent=False)
        sys.exit(3)
    console.uvicorn("INFO", f"Uvicorn running on http://127.0.0.1:{play.port} (Press CTRL+C to quit)")
    handle_signals(state, server)
    server.run()
    shut_down(state)


def lifespan(warmup: threading.Thread) -> None:
    """The end of the application waits for the warm-up thread."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    warmup.join()


def _wait_and_warmup(state: uvicorn.State) -> None:
    if not _execute_server_warmup(state):
        return
    console.info("The server is fired up and ready to roll!")
    state.status = "Up"
