"""What the main thread's Python frames say: a collective, the rendezvous, a lock file, or work."""

from __future__ import annotations

from dataclasses import dataclass

from sgmon.model import Frame, StackDump

_COLLECTIVES = frozenset(
    {
        "barrier",
        "monitored_barrier",
        "all_reduce",
        "all_gather",
        "all_gather_object",
        "all_gather_into_tensor",
        "broadcast",
        "broadcast_object_list",
        "broadcast_pyobj",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "all_to_all",
        "gather",
        "scatter",
        "gather_object",
        "new_group",
        "_new_process_group_helper",
        "dist_barrier_after_load",
        "wait_until_ready",
        "ncclCommInitRank",
    }
)
_STORES = frozenset({"_create_c10d_store", "_tcp_rendezvous_handler", "init_process_group"})
_GPU_SYNC = frozenset({"synchronize"})
_LOCKS = {"file_baton": "wait", "filelock": "acquire"}
_LOCK_FUNCTIONS = frozenset({"_poll_until_acquired", "blocking_acquire", "_build_lock", "_local_rank_compile_lock"})
_IMPORTS = frozenset({"_find_and_load", "_find_and_load_unlocked", "exec_module", "_load_unlocked"})
#: frames that lie above a wait and tell nothing
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class StackWait:
    """kind: peer, store, gpu-sync, lock, import or work. moving: samples of one request differ."""

    kind: str
    frame: str
    moving: bool = False


def stack_wait(dumps: tuple[StackDump, ...]) -> StackWait | None:
    """The reading of the newest usable dump; None without one."""
    usable = [d for d in dumps if d.threads and not d.error]
    if not usable:
        return None
    stacks = [main_frames(d) for d in usable]
    moving = len({tuple((f.function, f.line) for f in s) for s in stacks}) > 1
    kind, frame = _kind(stacks[-1])
    return StackWait(kind, frame, moving)


def main_frames(dump: StackDump) -> tuple[Frame, ...]:
    """Frames of the main thread, innermost first."""
    for thread in dump.threads:
        if thread.name == "MainThread" or thread.tid == dump.pid:
            return thread.frames
    return dump.threads[0].frames if dump.threads else ()


def _kind(frames: tuple[Frame, ...]) -> tuple[str, str]:
    for frame in frames[:_DEPTH]:
        where = f"{frame.function} ({frame.file})" if frame.file else frame.function
        lock = next((f for key, f in _LOCKS.items() if key in frame.file and frame.function == f), "")
        if lock or frame.function in _LOCK_FUNCTIONS:
            return "lock", where
        if frame.function in _STORES:
            return "store", where
        if frame.function in _COLLECTIVES:
            return "peer", where
        if frame.function in _GPU_SYNC and "cuda" in frame.file:
            return "gpu-sync", where
        if frame.function in _IMPORTS:
            return "import", where
    return "work", frames[0].function if frames else ""
