"""Who else holds GPU memory: before a start, and during one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.analyse.gpu.holders import holdings, unaccounted_bytes
from sgmon.model import Candidate, Gpu, GpuProcess, GpuReading, Missing, Process, ProcsReading, Role, Server, Snapshot

GIB = 1024**3
WORKER = GpuProcess(4711, 31 * GIB, name="sglang::scheduler_TP1")


def gpu(index: int, *holders: GpuProcess, used: int | None = None, **more: object) -> Gpu:
    known = sum(holder.used_bytes or 0 for holder in holders)
    return Gpu(index, total_bytes=140 * GIB, used_bytes=known if used is None else used, processes=holders, **more)


def waiting(*gpus: Gpu, **more: object) -> Snapshot:
    return Snapshot(t=9.0, looked_for="a running server", gpu=GpuReading(gpus, source="NVML"), **more)


def starting(*gpus: Gpu, **more: object) -> Snapshot:
    processes = (
        Process(100, 1, 1, Role.LAUNCHER, state="S"),
        Process(101, 100, 2, Role.WORKER, "TP0", title="sglang::scheduler_TP0", state="R", cpu_s=1.0),
    )
    return replace(waiting(*gpus), server=Server(100, 1), server_seen_t=1.0, procs=ProcsReading(processes), **more)


def texts(snapshot: Snapshot) -> list[str]:
    return [fact.text for fact in diagnose(snapshot).evidence if "held" in fact.text]


def test_an_orphan_is_a_finding_before_the_start() -> None:
    verdict = diagnose(waiting(gpu(0), gpu(2, WORKER)))
    assert verdict.state == "waiting"
    assert [fact.text for fact in verdict.evidence] == [
        "31.0 GiB of GPU 2 held by pid 4711, sglang::scheduler_TP1 of a server that is gone",
        "looked for a running server",
    ]
    assert verdict.next[0].command == "ps -o pid,ppid,user,etime,args -p 4711"


def test_a_worker_of_a_server_that_runs_is_no_orphan() -> None:
    others = (Candidate(900, 1, "python -m sglang.launch_server"),)
    assert texts(waiting(gpu(2, WORKER), candidates=others)) == [
        "31.0 GiB of GPU 2 held by pid 4711, sglang::scheduler_TP1 of another server"
    ]


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (gpu(0, GpuProcess(7, 5 * GIB, name="python train.py")), "5.0 GiB of GPU 0 held by pid 7 python train.py"),
        (gpu(0, GpuProcess(7, 5 * GIB)), "5.0 GiB of GPU 0 held by pid 7, which is not in this /proc"),
        (gpu(0, GpuProcess(7, None, name="vllm"), used=3 * GIB), "3.0 GiB of GPU 0 held by pid 7 vllm"),
        (gpu(0, used=40 * GIB), "40.0 GiB of GPU 0 held by no process that the driver lists"),
    ],
)
def test_strangers_in_words(held: Gpu, words: str) -> None:
    assert texts(waiting(held))[0].startswith(words)


def test_what_is_small_or_not_known_is_no_finding() -> None:
    small = gpu(0, GpuProcess(7, GIB // 2, name="Xorg"))
    assert texts(waiting(small)) == []
    assert texts(replace(waiting(gpu(0, WORKER)), looked_for="")) == []  # nobody has looked for a server yet
    assert texts(waiting(gpu(0, used=644 * 1024**2))) == []


def test_during_a_start_only_the_gpus_of_its_ranks_count() -> None:
    own = GpuProcess(101, 60 * GIB, "TP0", "sglang::scheduler_TP0")
    stranger = GpuProcess(7, 50 * GIB, name="python train.py")
    assert texts(starting(gpu(0, own, stranger, ranks=("TP0",)), gpu(1, WORKER))) == [
        "50.0 GiB of GPU 0 held by pid 7 python train.py"
    ]
    assert texts(starting(gpu(0, own, ranks=("TP0",)))) == []
    assert texts(replace(starting(gpu(0, own, stranger, ranks=("TP0",))), procs=ProcsReading())) == []


def test_a_pid_of_another_namespace_may_be_the_rank_itself() -> None:
    hidden = gpu(0, GpuProcess(881234, 60 * GIB), ranks=("TP0",), ranks_inferred=True)
    assert texts(starting(hidden)) == []


def test_what_nobody_accounts_for_is_known_only_where_all_are_listed_with_a_size() -> None:
    listed = gpu(0, GpuProcess(1, 10 * GIB, name="a"), used=13 * GIB)
    assert unaccounted_bytes(listed) == 3 * GIB
    assert [(one.kind, one.used_bytes) for one in holdings(listed)] == [
        ("stranger", 10 * GIB),
        ("unaccounted", 3 * GIB),
    ]
    two = gpu(0, GpuProcess(1, None, name="a"), GpuProcess(2, GIB, name="b"), used=13 * GIB)
    assert unaccounted_bytes(two) is None
    assert [one.used_bytes for one in holdings(two)] == [GIB, None]
    old_driver = replace(listed, missing=(Missing("reserved_bytes", "counted as used"),))
    assert unaccounted_bytes(old_driver) is None
