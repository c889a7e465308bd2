"""The warm-up of http_server.py: /model_info until it answers, then one request, then "fired up"."""

from __future__ import annotations

import urllib.error
import urllib.request

from sgmon.demo import console, tracebacks
from sgmon.demo.played.sglang.srt.entrypoints.engine import kill_process_tree
from sgmon.demo.played.uvicorn.server import State

_TRIES = 120
_REQUEST_TIMEOUT_S = 600


def _execute_server_warmup(state: State) -> bool:
    play = state.play
    url = f"http://127.0.0.1:{play.port}"
    info = "/model_info" if play.release() >= (0, 5, 7) else "/get_model_info"
    if not _wait_for_server(state, url + info):
        console.info(f"Initialization failed. warmup error: {tracebacks.warmup_failed(play)}")
        kill_process_tree(play, include_parent=True)
        return False
    try:
        _post(url + "/generate", _REQUEST_TIMEOUT_S / play.speed)
        if play.release() >= (0, 5, 18):
            _post(url + "/freeze_gc", 10)
    except OSError:
        console.info(f"Initialization failed. warmup error: {tracebacks.warmup_failed(play)}")
        kill_process_tree(play, include_parent=True)
        return False
    return True


def _wait_for_server(state: State, url: str) -> bool:
    """One try a second, with 5 s for each answer; any answer but 200 counts as none."""
    for _ in range(_TRIES):
        state.play.pause(1.0)
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return True
        except (urllib.error.HTTPError, OSError):
            continue
    return False


def _post(url: str, timeout_s: float) -> None:
    request = urllib.request.Request(url, data=b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        answer.read()
