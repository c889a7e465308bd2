"""One process in full: state, memory, descriptors, sockets, and what could not be seen with its remedy."""

from __future__ import annotations

from collections.abc import Iterable

from sgmon.model import ESSENTIAL_ROLES, ActivityClock, FdTarget, Process, Rank, Snapshot, TcpPeer
from sgmon.text import clean
from sgmon.units import duration, lasting, percent, rate, size
from widgets.line import Line
from widgets.states import process_word, signal_label
from widgets.worker_rows import blocked_in


def process_of(snapshot: Snapshot, pid: int) -> Process | None:
    """The process with this pid."""
    return next((p for p in snapshot.procs.processes if p.pid == pid), None)


def detail_lines(snapshot: Snapshot, pid: int) -> list[Line]:
    """Everything that is known of one process."""
    process = process_of(snapshot, pid)
    if process is None:
        return [((f" pid {pid} is not among the server's processes any more", "warn"),)]
    clock = next((c for c in snapshot.clocks if c.pid == pid), None)
    rows = _state(process, clock, next((rank for rank in snapshot.ranks if rank.pid == pid), None))
    rows += _signs(clock, snapshot.t)
    rows += _memory(process, clock)
    rows += _output(process)
    rows += _loading(process)
    rows += _table("sockets", (_tcp(item) for item in process.tcp))
    rows += _table("descriptors", ((f"{fd.fd:>5}  {clean(fd.target, 200)}", _fd_note(fd)) for fd in process.fds))
    rows += _table("kernel stack", ((clean(frame, 120), "") for frame in process.kernel_stack))
    rows += missing_rows(process)
    return rows


def _fd_note(fd: FdTarget) -> str:
    """ "weights, at 1.2 GiB"."""
    return clean(fd.note, 120) + (f", at {size(fd.pos)}" if fd.pos else "")


def _fact(name: str, words: str, style: str = "", note: str = "") -> Line:
    return ((f" {name:<16}", "info"), (words, style), (f"  {note}" if note else "", "dim"))


def _head(name: str) -> list[Line]:
    return [(), ((f" {name}", "title"),)]


def _state(process: Process, clock: ActivityClock | None, rank: Rank | None) -> list[Line]:
    word, style = process_word(process)
    blocked, blocked_style = blocked_in(process, rank)
    rows = [
        _fact("title", clean(process.title or process.comm, 200) or "?"),
        _fact("state", word, style or "strong", f"/proc letter {clean(process.state, 4)}"),
        _fact("blocked in", blocked, blocked_style, f"wchan {clean(process.wchan, 60)}" if process.wchan else ""),
    ]
    if process.call is not None:
        timeout = "" if process.call.timeout_ms is None else f"times out after {process.call.timeout_ms} ms"
        fd = "" if process.call.fd is None else f" fd {process.call.fd}"
        rows.append(
            _fact(
                "system call",
                f"{clean(process.call.name, 40) or '?'}{fd} {clean(process.call.target, 200)}",
                "",
                timeout,
            )
        )
    states = " ".join(f"{count}×{letter}" for letter, count in process.thread_states)
    rows.append(_fact("threads", "?" if process.threads is None else str(process.threads), "", states))
    rows.append(
        _fact("parent", str(process.ppid), "", f"pid {process.ns_pid} inside its container" if process.ns_pid else "")
    )
    if process.tracer_pid:
        rows.append(_fact("traced by", f"pid {process.tracer_pid}", "warn"))
    if process.waits_for_lock:
        holder = f"held by pid {process.lock_holder}" if process.lock_holder else ""
        rows.append(_fact("waits for lock", clean(process.waits_for_lock, 200), "warn", holder))
    if clock is not None:
        rows.append(
            _fact(
                "CPU, 10 s",
                percent(clock.cpu_percent),
                "",
                f"wanted {percent(clock.demand_percent)}, children {percent(clock.tree_cpu_percent)}",
            )
        )
    rows.append(_fact("CPU, total", duration(process.cpu_s)))
    return rows


def _signs(clock: ActivityClock | None, t: float) -> list[Line]:
    rows = _head("activity, newest first")
    if clock is None or not clock.marks:
        return [*rows, ((" none seen yet", "dim"),)]
    for mark in sorted(clock.marks, key=lambda m: -m.t):
        alone = "  alone it proves nothing while a rank spins in a collective" if mark.signal == "cpu" else ""
        text = clean(mark.text, 160)
        rows.append(
            _fact(
                signal_label(mark.signal, 14),
                f"{lasting(t - mark.t)} ago",
                "strong",
                ("" if text == mark.signal else text) + alone,
            )
        )
    return rows


def _memory(process: Process, clock: ActivityClock | None) -> list[Line]:
    grows = "" if clock is None or clock.rss_rate is None else f"changes by {rate(clock.rss_rate)}"
    reads = "" if clock is None or clock.read_rate is None else f"now {rate(clock.read_rate)}"
    return [
        *_head("memory and disk"),
        _fact("anonymous", size(process.rss_anon_bytes), "", grows),
        _fact("mapped files", size(process.rss_file_bytes)),
        _fact("shared", size(process.rss_shmem_bytes)),
        _fact("read from disk", size(process.read_bytes), "", reads),
        _fact("read, all", size(process.rchar_bytes), "", "page cache and pipes counted"),
        _fact("major faults", "?" if process.majflt is None else str(process.majflt)),
    ]


def _output(process: Process) -> list[Line]:
    rows = _head("output")
    why = 'the reason is below, in "not seen"' if process.missing else ""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        target = process.stdio[number]
        rows.append(
            _fact(
                f"fd {number} {name}",
                clean(target, 200) if target is not None else "?",
                "",
                why if target is None else "",
            )
        )
    same = {
        True: "the same file as the launcher",
        False: "NOT the launcher's file",
        None: "not known whether the same as the launcher's",
    }
    rows.append(_fact("log", same[process.same_log], "warn" if process.same_log is False else ""))
    return rows


def _loading(process: Process) -> list[Line]:
    rows: list[Line] = []
    shards = process.shards
    if shards is not None and shards.names:
        where = f"{clean(shards.fstype, 20)} {clean(shards.mount, 120)}".strip()
        rows += _head("weight files mapped now")
        rows.append(_fact("files", str(len(shards.names)), "strong", f"{size(shards.mapped_bytes)} on {where}"))
        rows += [((f"   {clean(name, 200)}", ""),) for name in shards.names[:12]]
    if process.compilers:
        rows += _head("compilers below it")
        rows += [
            (
                (f"   {item.pid:>7} {clean(item.name, 20):<12} {duration(item.cpu_s):>7} CPU  ", ""),
                (clean(item.what, 160), "dim"),
            )
            for item in process.compilers
        ]
    return rows


def _tcp(item: TcpPeer) -> tuple[str, str]:
    peer = f"pid {item.peer_pid}" if item.peer_pid else ""
    trouble = f" {item.retransmits} retransmits" if item.retransmits else ""
    return f"{clean(item.state, 12):<11} {clean(item.local, 48)} → {clean(item.remote, 48)}", peer + trouble


def _table(name: str, items: Iterable[tuple[str, str]]) -> list[Line]:
    rows: list[Line] = [((f" {text}", ""), (f"  {note}" if note else "", "dim")) for text, note in items]
    return [*_head(name), *rows] if rows else []


def missing_rows(process: Process) -> list[Line]:
    """What could not be seen, and what would give it."""
    helper = process.role not in ESSENTIAL_ROLES
    if not (process.missing or helper):
        return []
    rows = _head("not seen")
    if helper:
        rows.append(_fact("counters", "of a helper only its state and its CPU time are read", "dim"))
    for item in process.missing:
        rows.append(_fact(clean(item.signal, 14), clean(item.why, 200), "warn"))
        if item.remedy:
            rows.append(((" fix             ", "key"), (clean(item.remedy, 200), "accent")))
    return rows
