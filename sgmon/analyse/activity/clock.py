"""The activity clock of one process: what is known of it so far, as rates, shares and times."""

from __future__ import annotations

from sgmon.analyse.activity.counters import CPU_WINDOW_S
from sgmon.analyse.activity.oom import OomKills
from sgmon.analyse.activity.watched import Watched, cpu_share_alone, with_marks
from sgmon.model import ActivityClock


def clock_of(watched: Watched, oom: OomKills, oom_kills: int | None, *, alone: bool) -> ActivityClock:
    """The clock of a process, without what its GPU does. alone: no other that is watched is in its control group."""
    process, history = watched.process, watched.history
    cpu, demand = history.rate("cpu_s", CPU_WINDOW_S), history.rate("demand_s", CPU_WINDOW_S)
    tree = history.rate("tree_s", CPU_WINDOW_S)
    rchar, disk = history.rate("rchar"), history.rate("read_bytes")
    mapped = history.rate("rss_file")
    counted = [r for r in (rchar, disk) if r is not None]
    reads = [*counted, mapped] if mapped is not None and (mapped or counted) else counted  # alone, 0 says nothing
    clock = ActivityClock(
        pid=process.pid,
        rank=process.rank,
        role=process.role,
        since_t=watched.first_t,
        read_rate=max(reads) if reads else None,
        rss_rate=history.rate("rss_anon"),
        cpu_percent=None if cpu is None else cpu * 100,
        demand_percent=None if demand is None else demand * 100,
        tree_cpu_percent=None if tree is None else tree * 100,
        rchar_rate=rchar,
        cpu_share_alone=cpu_share_alone(watched),
        state=process.state,
        state_since_t=watched.state_since_t,
        io_wait_share=history.share_of_state("D"),
        first_t=watched.first_t,
        gone_t=watched.gone_t,
        exit_code=process.exit_code,
        exit_signal=process.exit_signal,
        exit_source=process.exit_source,
        oom_kills=oom_kills,
        load_bytes=watched.load_bytes,
        load_read_bytes=watched.load_read_bytes,
        position=watched.position,
        build_s=round(sum(watched.compilers.values()), 1),
        disk_rate=disk,
        load_t=watched.load_t,
        load_rate=_load_rate(watched, "rchar", "read_bytes", "rss_file"),
        load_disk_rate=_load_rate(watched, "read_bytes"),
        born=process.start_ticks,
        ppid=watched.ppid,
        becomes=process.becomes,
        alive_t=watched.alive_t,
        exit_t=process.exit_t,
        oom=oom.since(process.cgroup),
        oom_host=oom.host,
        oom_shared=not alone,
    )
    return with_marks(clock, watched)


def _load_rate(watched: Watched, *names: str) -> float | None:
    """Bytes a second of the weight load, by the counter that grows most; None before it."""
    if watched.load_t is None:
        return None
    rates = (watched.history.rate_since(name, watched.load_t) for name in names)
    return max((one for one in rates if one is not None), default=None)
