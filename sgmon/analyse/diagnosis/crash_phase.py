"""In which phase a server crashed: its own, and that of a rank."""

from __future__ import annotations

from sgmon.analyse.deaths.death import Death
from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Role

#: the rule of a crash whose order may still become known: a line or a reading is awaited
OPEN = "process-gone-open"
#: the rule of a crash whose order is as known as it gets
SETTLED = "process-gone"


def server_phase(context: Context) -> str:
    """The phase in which it crashed: the ranks may load on without the process that has died."""
    old = context.snapshot.verdict
    return old.phase if (old.state, old.rule) == ("crashed", SETTLED) else context.phase


def phase_of(context: Context, name: str, pid: int | None = None) -> str:
    """Of that rank, as it was last seen; the server's for a process that is no rank."""
    workers = [rank for rank in context.snapshot.ranks if rank.role in (Role.WORKER, Role.IMPORTING)]
    own = (rank.phase for rank in workers if rank.pid == pid or (name and rank.name == name))
    return next(own, server_phase(context))


def stage_of(context: Context, first: Death | None) -> str:
    """ "in the weight load", "after it was ready": where the first that died was; the server, if nobody is known."""
    if context.has_been_ready:
        return "after it was ready"
    phase = server_phase(context) if first is None else phase_of(context, first.rank, first.pid)
    return context.during(phase)
