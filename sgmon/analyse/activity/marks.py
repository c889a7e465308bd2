"""Two readings of one process, or the log: which signs of life are between them."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.analyse import thresholds
from sgmon.analyse.activity.counters import CPU_WINDOW_S, History
from sgmon.model import LogState, Mark, Process, WatchDirReading
from sgmon.units import percent, plural, rate, size

CHILDREN = "child processes"
_READS = (
    ("read_bytes", "read from disk", thresholds.READ_BYTES_S),
    ("rchar", "read", thresholds.READ_BYTES_S),
    ("rss_file", "mapped", thresholds.READ_BYTES_S),
    ("written", "written to disk", thresholds.WRITE_BYTES_S),
)


def process_marks(old: Process, new: Process, history: History, t: float, leads: bool) -> Iterator[Mark]:
    """Signs of activity between two readings. Thresholds per second, so that a slow sampler sees the same. leads:
    workers or their parents descend from it, whose CPU time is not its own."""
    if new.title != old.title and old.title and new.title:
        yield Mark("title", t, f"title is now {new.title.strip()[:40]}")
    yield from _bytes(old, new, history, t)
    yield from _memory(history, t)
    yield from _cpu(history, t)
    if not leads or new.compilers:
        yield from _children(old, new, history, t)


def log_marks(log: LogState) -> Iterator[tuple[str, Mark]]:
    """(rank, mark): the last line, each rank's last milestone, each bar that moved. Undated text gives none."""
    if log.last_activity_t is not None and log.activity_is_dated:
        rank = log.last_line.rank if log.last_line is not None else ""
        yield rank, Mark("log", log.last_activity_t, f"log line {log.lines}")
    for progress in log.ranks:
        if progress.seen_t is not None and log.is_dated(progress.seen_t):
            yield progress.rank, Mark("log", progress.seen_t, f"log: {progress.milestone}")
    for bar in log.bars:
        if bar.moved_t is not None and log.is_dated(bar.moved_t):
            yield bar.rank, Mark("bar", bar.moved_t, f"bar at {bar.done}/{bar.total}", is_over=bar.finished)


def file_marks(old_t: float, old: WatchDirReading, new: WatchDirReading, t: float) -> Iterator[Mark]:
    """Folders that grew, or in which something is newer than before. Files that go are no sign: others clean up."""
    before = {folder.path: folder for folder in old.dirs}
    for folder in new.dirs:
        last = before.get(folder.path)
        if last is None or folder.files is None:
            continue
        files = folder.files - (last.files or 0)
        grown = max(
            (folder.size_bytes or 0) - (last.size_bytes or 0), (folder.used_bytes or 0) - (last.used_bytes or 0)
        )
        if files > 0 or grown > 0 or (folder.newest_epoch or 0.0) > (last.newest_epoch or 0.0):
            more = [plural(files, "new file")] if files > 0 else []
            more += [f"{size(grown)} more"] if grown > 0 else []
            words = f"{', '.join(more) or 'something newer'} in {folder.path}"
            yield Mark("files", t, words, max(0, grown) / max(0.1, t - old_t))


def _bytes(old: Process, new: Process, history: History, t: float) -> Iterator[Mark]:
    found: list[tuple[float, str, str]] = []
    for name, words, least in _READS:
        step = history.last_step(name)
        if step is not None and step[0] >= least * max(step[1], 0.5):
            found.append((step[0] / step[1], words, name))
    if found:
        speed, words, name = max(found)
        average = history.rate(name) or speed
        yield Mark("bytes", t, f"{rate(average)} {words}", average)
    elif new.shards is not None and new.shards.names and _names(old) != new.shards.names:
        yield Mark("bytes", t, f"maps {new.shards.names[-1]}")


def _names(process: Process) -> tuple[str, ...]:
    return process.shards.names if process.shards is not None else ()


def _memory(history: History, t: float) -> Iterator[Mark]:
    step = history.last_step("rss_anon")
    if step is not None and step[0] >= thresholds.ANON_BYTES_S * max(step[1], 0.5):
        yield Mark("memory", t, f"memory grew by {size(step[0])}", step[0] / step[1])


def _cpu(history: History, t: float) -> Iterator[Mark]:
    """Both the last step and the last five seconds: one tick of a heartbeat is no work."""
    share = history.rate("cpu_s", CPU_WINDOW_S)
    if share is not None and _least(history, "cpu_s", share) * 100 >= thresholds.CPU_PERCENT:
        yield Mark("cpu", t, f"CPU {percent(share * 100)} of a core", share * 100)
        return
    wanted = history.demand() if _wants_it(history) else None
    if wanted is None:
        return
    least = _least(history, "demand_s", wanted) if history.queue_known else wanted
    if least * 100 >= thresholds.DEMAND_PERCENT:
        yield Mark("cpu", t, f"wants {percent(wanted * 100)} of a core", wanted * 100, True)


def _least(history: History, name: str, share: float) -> float:
    """The smaller of the last five seconds' share and the last step's."""
    step = history.last_step(name)
    return 0.0 if step is None else min(share, step[0] / step[1])


def _wants_it(history: History) -> bool:
    """A starved worker's main thread is runnable at most looks. A sleeper of many threads only queues, briefly and
    often: on a machine at six times its cores that alone summed up to 84 % of a core."""
    runnable = history.share_of_state("R")
    return runnable is not None and runnable >= 0.5


def _children(old: Process, new: Process, history: History, t: float) -> Iterator[Mark]:
    """Descendants that work: a compiler that was born, or CPU time of the live tree."""
    step = history.last_step("tree_s")
    busy = step is not None and step[0] / step[1] * 100 >= thresholds.CHILD_PERCENT
    before = {c.pid: c.cpu_s for c in old.compilers}
    fresh = [c for c in new.compilers if c.pid not in before or c.cpu_s > before[c.pid] + 0.05]
    if new.compilers and (busy or fresh):
        what = next((c.what for c in new.compilers if c.what), "")
        names = ", ".join(sorted({c.name for c in new.compilers})[:3])
        about = f" ({what})" if what else ""
        yield Mark("compiler", t, f"{plural(len(new.compilers), 'compiler')} at work: {names}{about}")
    elif busy and step is not None:
        yield Mark("children", t, f"{CHILDREN} at {percent(step[0] / step[1] * 100)} CPU")
