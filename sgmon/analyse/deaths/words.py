"""An end in words, and what is known of who sent SIGKILL."""

from __future__ import annotations

import signal

from sgmon.analyse.deaths.death import Death
from sgmon.analyse.deaths.order import oom_killed
from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Evidence, Role
from sgmon.units import plural

#: signals by which a process is asked to end: a terminal that closes, Ctrl-C, kill, a time-out, Kubernetes
ASKED = frozenset({1, 2, 15})
#: the same as a shell or Python reports them
_ASKED_CODES = frozenset({128 + number for number in ASKED})
_SIGKILL = 9


def how_it_ended(death: Death) -> str:
    """ "was killed by SIGKILL", "exited with status 1", "is gone (exit status unknown)"."""
    if death.signal:
        return by_signal(death.signal)
    if death.code is not None:
        return f"exited with status {death.code}"
    return "is gone (exit status unknown)"


def by_signal(number: int) -> str:
    """ "was killed by SIGKILL", "was ended by SIGTERM"."""
    return f"was {'ended' if number in ASKED else 'killed'} by {_name(number)}"


def was_asked(death: Death) -> bool:
    """Somebody asked it to end, and it did."""
    return death.signal in ASKED or death.code in _ASKED_CODES


def who(context: Context, death: Death) -> str:
    """ "TP1 (pid 4711)", "the launcher (pid 4700)"."""
    role = "an importing worker" if death.will_be is Role.IMPORTING else f"the {context.label(death.will_be)}"
    return f"{death.rank or role} (pid {death.pid})"


def names(context: Context, deaths: tuple[Death, ...]) -> str:
    """ "TP0 (pid 1), TP1 (pid 2) and 3 more"."""
    shown = [who(context, death) for death in deaths[:4]]
    if len(deaths) > len(shown):
        return f"{', '.join(shown)} and {len(deaths) - len(shown)} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def sigkill_fact(context: Context, death: Death) -> Evidence:
    """Who sent SIGKILL: the OOM killer, a person or another program, or not known."""
    snapshot, clock = context.snapshot, death.clock
    lines = snapshot.kernel.lines if snapshot.kernel is not None else ()
    told = next((line for line in lines if line.pid == death.pid), None)
    if told is not None:
        return Evidence("kernel log", told.text, death.rank, death.pid)
    if oom_killed(snapshot, death):
        times = plural(clock.oom or 0, "time")
        return Evidence("cgroup", f"the OOM killer struck {times} in its own control group", death.rank, death.pid)
    struck = clock.oom or clock.oom_kills
    if struck:
        return Evidence("cgroup", f"the kernel's OOM killer struck {plural(struck, 'time')} since")
    if clock.oom_host:
        where = "on this host, in another control group" if clock.oom == 0 else "on this host"
        return Evidence("vmstat", f"the kernel's OOM killer struck {plural(clock.oom_host, 'time')} {where}")
    if clock.oom_host == 0:
        return Evidence("vmstat", "the OOM killer's count of this host did not move: somebody else sent SIGKILL")
    if clock.oom == 0 or snapshot.procs.oom_kills is not None:
        return Evidence("cgroup", "the OOM killer's count of its control group did not move")
    return Evidence("cgroup", "whether the OOM killer did it cannot be read here")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
