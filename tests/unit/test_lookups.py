"""Look-ups by pid and by rank, which keep the cost of many ranks and many nodes a straight line."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.gpu.holders import holdings_in
from sgmon.analyse.gpu.rank_mapping import gpu_of
from sgmon.analyse.nodes.store import NodesStore
from sgmon.analyse.ranks.log_progress import progress_of
from sgmon.analyse.ranks.make import Kept, with_ranks
from sgmon.analyse.store import Store
from sgmon.discovery.tree import descendants_of
from sgmon.model import (
    Event,
    Gpu,
    GpuProcess,
    GpuReading,
    LogReading,
    LogState,
    Milestone,
    NodeReading,
    Process,
    ProcsReading,
    Role,
    Server,
    ServerArgs,
    ServerReading,
    Snapshot,
    StackDump,
)
from sgmon.servers.sglang.phases import PHASES

RANKS = 40


def worker(number: int, **more: object) -> Process:
    return Process(
        100 + number, 1, 100 + number, Role.WORKER, rank=f"TP{number}", title="sglang::scheduler", cpu_s=1.0, **more
    )


WORKERS = tuple(worker(number) for number in range(RANKS))
LAUNCHER = Process(1, 0, 1, Role.LAUNCHER, cpu_s=1.0)
SERVER = Server(1, 1, args=ServerArgs(tp=RANKS))


def served(workers: tuple[Process, ...] = WORKERS) -> Store:
    store = Store(0.0)
    store.step(Event(0.0, "server", ServerReading(SERVER)))
    store.step(Event(1.0, "procs", ProcsReading((LAUNCHER, *workers))))
    return store


def said(name: str, rank: str, line: int, phase: str = "weights") -> Milestone:
    return Milestone(name, "begin", phase, line, rank)


def test_a_process_has_the_gpu_that_lists_it_before_the_one_with_its_rank():
    by_pid, by_rank = Gpu(0, processes=(GpuProcess(105),)), Gpu(1, ranks=("TP5",))
    assert gpu_of(WORKERS[5], (by_rank, by_pid)) is by_pid
    assert gpu_of(worker(6), (by_rank, by_pid)) is None
    assert gpu_of(Process(9, 1, 9, Role.WORKER, rank="TP5"), (by_rank, by_pid)) is by_rank


def test_a_rank_on_two_gpus_has_the_first_and_a_process_without_a_rank_none():
    gpus = (Gpu(0, ranks=("", "TP3")), Gpu(1, ranks=("TP3",)))
    assert gpu_of(worker(3), gpus) is gpus[0]
    assert gpu_of(Process(9, 1, 9, Role.LAUNCHER), gpus) is None


def test_each_rank_of_many_has_its_own_gpu_process_and_dumps():
    store = served()
    gpus = tuple(Gpu(n, used_bytes=1, processes=(GpuProcess(100 + n, 1),)) for n in reversed(range(RANKS)))
    store.step(Event(2.0, "gpu", GpuReading(gpus, source="NVML")))
    dumps = tuple(StackDump(100 + n, f"TP{n}", Role.WORKER, t=2.0, request=1) for n in reversed(range(RANKS)))
    found = with_ranks(replace(store.snapshot, stacks=dumps)).ranks
    assert [rank.name for rank in found] == [f"TP{n}" for n in range(RANKS)]
    for number, rank in enumerate(found):
        assert rank.gpu is not None and rank.gpu.index == number
        assert [dump.pid for dump in rank.dumps] == [100 + number] == [rank.pid]


def test_lines_of_a_rank_are_signs_of_its_live_process_and_other_lines_of_the_launcher():
    old, new = worker(3), Process(200, 1, 200, Role.WORKER, rank="TP3", title="x", cpu_s=1.0)
    store = served((replace(old, gone=True), new, worker(4)))
    store.step(
        Event(2.0, "log", LogReading("l", text="[2026-11-29 16:04:40 TP3] Load weight begin. avail mem=9 GB\n"))
    )
    marked = {clock.pid: {mark.signal for mark in clock.marks} for clock in store.snapshot.clocks}
    assert "log" in marked[200] and "log" not in marked[103] and "log" not in marked[104]
    store.step(Event(3.0, "log", LogReading("l", text="[2026-11-29 16:04:41] a line of nobody\n")))
    clock = next(clock for clock in store.snapshot.clocks if clock.pid == 1)
    assert [mark.t for mark in clock.marks if mark.signal == "log"] == [3.0]


def test_the_trees_pids_are_those_of_this_reading():
    gpu = Gpu(0, processes=(GpuProcess(100, 1, name="sglang::scheduler_TP0"), GpuProcess(7, 1, name="x")))
    tree = Snapshot(procs=ProcsReading((worker(0),)))
    inner = Snapshot(procs=ProcsReading((Process(900, 1, 1, Role.WORKER, ns_pid=7),)))
    assert {held.pid: held.kind for held in holdings_in(tree, gpu)} == {100: "rank", 7: "stranger"}
    assert {held.pid: held.kind for held in holdings_in(inner, gpu)}[7] == "server"


def test_progress_counts_the_ranks_that_are_asked_for():
    log = LogState(family="sglang", milestones=(said("load_begin", "TP0", 1), said("load_begin", "TP9", 2)))
    assert set(progress_of(log, ("TP0", "TP1"), "0.5.23", PHASES)) == {"TP0"}
    assert set(progress_of(log, ("TP0", "TP9"), "0.5.23", PHASES)) == {"TP0", "TP9"}


def test_what_is_made_of_the_milestones_is_kept_while_they_are_the_same():
    """A serving log grows many times a second, and each node of many has its own."""
    nodes = [(served(), Kept()) for _ in range(12)]
    for store, _ in nodes:
        store.step(
            Event(2.0, "log", LogReading("l", text="[2026-11-29 16:04:40 TP3] Load weight begin. avail mem=9 GB\n"))
        )
    first = [with_ranks(store.snapshot, kept).ranks[3].passed for store, kept in nodes]
    for store, _ in nodes:
        store.step(Event(3.0, "log", LogReading("l", text="[2026-11-29 16:04:41] another line\n")))
    again = [with_ranks(store.snapshot, kept).ranks[3].passed for store, kept in nodes]
    assert all(passed and new is passed for passed, new in zip(first, again, strict=True))
    store, kept = nodes[0]
    store.step(Event(4.0, "log", LogReading("l", text="[2026-11-29 16:04:58 TP3] Load weight end. elapsed=2.0 s\n")))
    assert len(with_ranks(store.snapshot, kept).ranks[3].passed) > len(first[0])


def test_a_link_that_is_measured_again_makes_no_look_at_the_whole():
    store = NodesStore(0.0)
    live = NodeReading("a", "live", offset_s=0.0, round_trip_s=0.001)
    store.step(Event(0.0, "node", live, node="a"))
    store.step(Event(0.1, "server", ServerReading(SERVER), node="a"))
    seen = store.snapshot.nodes
    store.step(Event(5.0, "node", replace(live, round_trip_s=0.002), node="a"))
    assert store.snapshot.nodes is seen
    store.step(Event(5.1, "tick"))
    assert store.snapshot.nodes[0].reading.round_trip_s == 0.002
    store.step(Event(6.0, "node", replace(live, state="lost"), node="a"))
    assert store.snapshot.nodes[0].reading.state == "lost" and not store.snapshot.nodes[0].heard


def test_descendants_are_found_once_each_in_a_loop_of_parents():
    below = {1: [2, 3], 2: [4], 4: [1, 2], 3: []}
    assert sorted(descendants_of(1, below)) == [2, 3, 4]
    assert descendants_of(9, below) == []
