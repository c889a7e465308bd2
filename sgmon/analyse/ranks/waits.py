"""What one process waits in: from its system call, kernel wait, sockets, GPU and stack."""

from __future__ import annotations

from sgmon.analyse import thresholds
from sgmon.model import ActivityClock, Process, RankStack, Wait, WaitKind
from sgmon.model.procs import STORAGE_WCHANS
from sgmon.units import plural

#: seconds that a thread must have slept for storage to say what its process waits in: a working one sleeps for less
ASLEEP_S = 3.0


def wait_of(process: Process, clock: ActivityClock | None, stack: RankStack | None) -> Wait:
    """The best guess, the surest evidence first."""
    for found in (
        _lock(process, stack),
        _spin(clock),
        _storage(process, clock),
        _stack(stack),
        _store(process, clock),
        _download(process),
        _call(process),
        _wchan(process),
    ):
        if found is not None:
            return found
    return Wait()


def _lock(process: Process, stack: RankStack | None) -> Wait | None:
    if process.waits_for_lock:
        held = f", held by pid {process.lock_holder}" if process.lock_holder else ", held by nobody"
        return Wait(
            WaitKind.LOCK if process.lock_holder else WaitKind.STALE_LOCK,
            f"waits for the lock file {process.waits_for_lock}{held}",
            "proc locks",
            0.9,
            process.waits_for_lock,
            process.lock_holder,
        )
    if stack is not None and stack.wait is WaitKind.LOCK:
        return Wait(WaitKind.STALE_LOCK, f"waits for a lock of a build, in {stack.frame}", "stack", 0.7)
    return None


def _spin(clock: ActivityClock | None) -> Wait | None:
    """Its GPU spins, and the process itself is busy: a kernel that waits is polled by a thread at 100 %."""
    if clock is None or not clock.gpu_spins or (clock.demand_percent is not None and clock.demand_percent < 50):
        return None
    watts = clock.gpu_power_max_w or 0.0
    text = f"spins in a collective: its GPU is pinned at 100 % with flat power ({watts:.0f} W)"
    return Wait(WaitKind.GPU_SPIN, text, "gpu", 0.8)


def _stack(stack: RankStack | None) -> Wait | None:
    if stack is None or stack.wait in (WaitKind.NONE, WaitKind.LOCK):
        return None
    return Wait(stack.wait, f"waits in {stack.words}: {stack.frame}", "stack", 0.9)


def _storage(process: Process, clock: ActivityClock | None) -> Wait | None:
    """A thread waits for a file system: the main one, or any other that has not run for a while. A loader reads with
    threads of its own while the main thread sleeps on a futex."""
    asleep = next((wait for wait in process.thread_waits if wait.asleep_s >= ASLEEP_S), None)
    if asleep is None and not _main_waits_for_storage(process, clock):
        return None
    target = (asleep.target if asleep is not None else process.call.target if process.call is not None else "") or ""
    shards = process.shards if process.shards is not None and process.shards.names else None
    mount, fstype = (asleep.mount, asleep.fstype) if asleep is not None else ("", "")
    if shards is not None and not mount:
        mount, fstype = shards.mount, shards.fstype
    more = ""
    if shards is not None and not target:
        target = shards.names[-1]
        more = f" or {plural(len(shards.names) - 1, 'other mapped shard')}" if len(shards.names) > 1 else ""
    where = "" if not mount else f" ({fstype})" if mount == target else f" on {mount} ({fstype})"
    words = f"waits for storage: {target or 'a page'}{more}{where}"
    if asleep is None:
        return Wait(WaitKind.STORAGE, words, "proc", 0.9, target)
    return Wait(WaitKind.STORAGE, words, "proc", 0.9, target, asleep_s=asleep.asleep_s, tid=asleep.tid)


def _main_waits_for_storage(process: Process, clock: ActivityClock | None) -> bool:
    share = clock.io_wait_share if clock is not None else None
    if process.state == "S":
        return process.wchan in STORAGE_WCHANS
    return process.state == "D" and (process.wchan in STORAGE_WCHANS or (share or 0) >= 0.8)


def _store(process: Process, clock: ActivityClock | None) -> Wait | None:
    """torch's TCPStore master counts its clients: asleep 5 ms at a time, 3.5 KB/s of rchar, 1-2 % CPU."""
    if clock is None or clock.rchar_rate is None:
        return None
    low, high = thresholds.STORE_POLL_BYTES_S
    asleep = "nanosleep" in (process.wchan or "") or (process.call is not None and "nanosleep" in process.call.name)
    quiet = (clock.cpu_percent or 0) < thresholds.CPU_PERCENT
    if asleep and quiet and low <= clock.rchar_rate <= high:
        return Wait(
            WaitKind.STORE, "polls the rendezvous store (TCPStore) for clients that have not come", "proc", 0.8
        )
    return None


def _download(process: Process) -> Wait | None:
    name = process.download
    return Wait(WaitKind.NETWORK, f"waits for the model hub (downloads {name})", "fd", 0.85, name) if name else None


def _call(process: Process) -> Wait | None:
    call = process.call
    if call is None:
        return None
    target = call.target
    if call.name == "connect":
        return Wait(WaitKind.CONNECT, f"connects to {target or 'a peer'} and gets no answer", "proc", 0.85, target)
    if call.name in ("recvfrom", "recvmsg", "recv") and "ESTAB" in target:
        return Wait(WaitKind.PEER, f"waits for data on {target}", "proc", 0.8, target)
    if call.name in ("poll", "ppoll") and ":53" in target:
        return Wait(WaitKind.DNS, f"waits for a name server ({target})", "proc", 0.85, target)
    if call.name in ("poll", "ppoll", "epoll_wait", "select") and "ESTAB" in target:
        return Wait(WaitKind.PEER, f"waits for data on {target}", "proc", 0.75, target)
    if call.name in ("wait4", "waitid"):
        return Wait(WaitKind.CHILD, "waits for a child process to end", "proc", 0.9)
    if call.name == "flock":
        return Wait(WaitKind.LOCK, f"waits for the lock file {target}", "proc", 0.85, target)
    if call.name == "write" and "pipe" in target:
        return Wait(WaitKind.LOG_READER, f"cannot write: the reader of {target} does not read", "proc", 0.9, target)
    if call.name == "read" and "pipe" in target:
        return Wait(WaitKind.PIPE, f"waits for data on {target}", "proc", 0.7, target)
    return None


_WCHANS = {
    "locks_lock_inode_wait": (WaitKind.LOCK, "waits for a file lock"),
    "do_wait": (WaitKind.CHILD, "waits for a child process to end"),
    "wait_woken": (WaitKind.PEER, "waits for data on a socket"),
    "anon_pipe_write": (WaitKind.LOG_READER, "cannot write: the reader of its pipe does not read"),
    "pipe_write": (WaitKind.LOG_READER, "cannot write: the reader of its pipe does not read"),
    "anon_pipe_read": (WaitKind.PIPE, "waits for data on a pipe"),
    "pipe_read": (WaitKind.PIPE, "waits for data on a pipe"),
    "hrtimer_nanosleep": (WaitKind.SLEEP, "sleeps on a timer (a polling wait or a pause)"),
    "futex_do_wait": (WaitKind.FUTEX, "sleeps on a futex (a collective, a thread or a lock)"),
    "futex_wait_queue": (WaitKind.FUTEX, "sleeps on a futex (a collective, a thread or a lock)"),
    "futex_wait_queue_me": (WaitKind.FUTEX, "sleeps on a futex (a collective, a thread or a lock)"),
}


def _wchan(process: Process) -> Wait | None:
    found = _WCHANS.get(process.wchan or "")
    return None if found is None else Wait(found[0], found[1], "proc", 0.5)
