"""How vLLM's processes end: 0.32.0, v1/executor/multiproc_executor.py (``_ensure_worker_termination``,
``monitor_death_pipe``), v1/utils.py (``shutdown``), utils/system_utils.py (``kill_process_tree``).

The engine core gives its workers 5 s, sends SIGTERM, 4 s later SIGKILL, and then ends itself. A worker whose engine
core is gone ends by itself, with a status of 0; so does the launcher after it was ready, with 1 before. None kills
itself: SIGKILL of a launcher came from outside.
"""

from __future__ import annotations

from sgmon.servers.family import Ends

ENDS = Ends(kills=frozenset({9, 15}), clean_up_s=10.0)
