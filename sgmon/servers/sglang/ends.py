"""How SGLang's processes end: 0.5.17 and 0.5.23, srt/utils/common.py (``kill_process_tree``,
``kill_itself_when_parent_died``), srt/utils/watchdog.py (``SubprocessWatchdog``), srt/entrypoints/engine.py."""

from __future__ import annotations

from sgmon.model import Role, ServerArgs
from sgmon.servers.family import Ends


def _restarts(role: Role, becomes: Role, args: ServerArgs) -> bool:
    """With several tokenizer workers the launcher is uvicorn's supervisor, which starts those anew that end, or that
    do not answer its ping in time (uvicorn/supervisors/multiprocess.py)."""
    workers = dict(args.raw).get("tokenizer_worker_num", "1")
    importing = role is Role.IMPORTING and becomes in (Role.OTHER, Role.TOKENIZER)
    return workers.isdigit() and int(workers) > 1 and (role is Role.TOKENIZER or importing)


ENDS = Ends(
    own_end=frozenset({3, 9}),  # SIGQUIT: its children send it, and before its handler is there it ends by that
    restarts=_restarts,
    needed=frozenset({Role.DETOKENIZER}),  # its watchdog begins after the ranks are ready, and then ends the server
)
