"""A rank that fails between two looks: it was last seen while it imported."""

from __future__ import annotations

from sgmon.analyse.store import Store
from sgmon.model import Event, LogReading, Process, ProcsReading, Role, Server, ServerArgs, ServerReading

TEXT = """\
[2026-11-29 17:00:00 TP0] Init torch distributed begin.
[2026-11-29 17:00:00 TP0] Load weight begin. avail mem=78.00 GB
[2026-11-29 17:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 3000, in run_scheduler_process
    scheduler = Scheduler(server_args, port_args)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.72 GiB.

[2026-11-29 17:00:00] Received sigquit from a child process. It usually means the child failed.
"""


def test_a_rank_that_fails_between_two_looks_is_where_its_lines_say() -> None:
    store = Store(1_795_000_000.0)
    launcher = Process(500, 1, 1, Role.LAUNCHER, state="S", threads=4, cpu_s=9.0)
    rank = Process(510, 500, 2, Role.IMPORTING, rank="TP0", rank_inferred=True, state="R", cpu_s=1.0)
    dead = Process(
        510,
        500,
        2,
        Role.IMPORTING,
        rank="TP0",
        rank_inferred=True,
        state="X",
        gone=True,
        exit_signal=9,
        exit_source="pidfd",
    )
    server = Server(500, 1, args=ServerArgs(), args_source="command line", log_path="/l")
    store.step(Event(0.0, "server", ServerReading(server)))
    store.step(Event(0.5, "procs", ProcsReading((launcher, rank), uid=0)))
    store.step(Event(1.0, "log", LogReading("/l", "8:1", 0, TEXT, len(TEXT))))
    store.step(Event(1.5, "procs", ProcsReading((launcher, dead), uid=0)))
    verdict = store.step(Event(4.0, "tick")).verdict
    assert (verdict.state, verdict.odd_ranks) == ("crashed", ("TP0",))
    assert verdict.headline.startswith("TP0: out of GPU memory (weight load)")
