"""Which rank is on which GPU: what NVML says, else a descriptor, else SGLang's formula."""

from __future__ import annotations

import pytest

from sgmon.analyse.gpu.rank_mapping import assign
from sgmon.model import Gpu, GpuProcess, Process, Role, Server, ServerArgs


def scheduler(pid: int, rank: str, **more: object) -> Process:
    return Process(pid=pid, ppid=1, start_ticks=1, role=Role.WORKER, rank=rank, title="sglang::scheduler", **more)


def server(visible_devices: str | None = None, **args: object) -> Server:
    return Server(1, 1, args=ServerArgs(**args), visible_devices=visible_devices)


def gpus(count: int, *holders: tuple[int, int]) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(index=i, uuid=f"GPU-{i}", processes=tuple(GpuProcess(pid) for at, pid in holders if at == i))
        for i in range(count)
    )


def ranks(found: tuple[Gpu, ...]) -> list[tuple[str, ...]]:
    return [gpu.ranks for gpu in found]


def test_pids_of_nvml_decide():
    found = assign(
        gpus(3, (2, 10), (0, 11), (1, 99)), (scheduler(10, "TP0"), scheduler(11, "TP1")), server(None, tp=2)
    )
    assert ranks(found) == [("TP1",), (), ("TP0",)]
    assert not any(gpu.ranks_inferred for gpu in found)
    assert found[0].processes[0].rank == "TP1"
    assert found[1].processes[0] == GpuProcess(99)  # a stranger stays one


def test_pids_inside_a_container_are_found_by_ns_pid():
    found = assign(gpus(1, (0, 7)), (scheduler(4711, "TP0", ns_pid=7),), server())
    assert ranks(found) == [("TP0",)]
    assert not found[0].ranks_inferred


def test_the_only_rank_has_no_name():
    found = assign(gpus(1, (0, 10)), (scheduler(10, ""),), server())
    assert ranks(found) == [("",)]


def test_only_schedulers_count_as_ranks():
    launcher = Process(pid=5, ppid=1, start_ticks=1, role=Role.LAUNCHER, nvidia_fds=(0,))
    found = assign(gpus(1, (0, 5)), (launcher,), server())
    assert ranks(found) == [()]


def test_one_descriptor_decides_where_pids_are_hidden():
    found = assign(
        gpus(2), (scheduler(10, "TP0", nvidia_fds=(1,)), scheduler(11, "TP1", nvidia_fds=(0,))), server(None, tp=2)
    )
    assert ranks(found) == [("TP1",), ("TP0",)]
    assert all(gpu.ranks_inferred for gpu in found)


def test_descriptor_numbers_are_minors():
    cards = (Gpu(index=0, minor=3), Gpu(index=1, minor=0))
    assert ranks(assign(cards, (scheduler(10, "TP0", nvidia_fds=(3,)),), server())) == [("TP0",), ()]


def test_several_descriptors_tell_nothing_so_the_formula_does():
    both = (0, 1)
    found = assign(
        gpus(2), (scheduler(10, "TP0", nvidia_fds=both), scheduler(11, "TP1", nvidia_fds=both)), server(None, tp=2)
    )
    assert ranks(found) == [("TP0",), ("TP1",)]
    assert found[0].ranks_inferred


def test_formula_fills_in_for_ranks_without_a_context_yet():
    importing = Process(pid=11, ppid=1, start_ticks=1, role=Role.IMPORTING, rank="TP1", rank_inferred=True)
    found = assign(gpus(2, (0, 10)), (scheduler(10, "TP0"), importing), server(None, tp=2))
    assert ranks(found) == [("TP0",), ("TP1",)]
    assert [gpu.ranks_inferred for gpu in found] == [False, True]


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [("TP0",), ("TP1",), (), ()]),
        ("", [("TP0",), ("TP1",), (), ()]),
        ("2,3", [(), (), ("TP0",), ("TP1",)]),
        ("3, 1", [(), ("TP1",), (), ("TP0",)]),
        ("GPU-2,GPU-0", [("TP1",), (), ("TP0",), ()]),
        ("1", [(), ("TP0",), (), ()]),
        ("9,8", [(), (), (), ()]),
    ],
)
def test_visible_devices(visible, expected):
    processes = (scheduler(10, "TP0"), scheduler(11, "TP1"))
    assert ranks(assign(gpus(4), processes, server(visible, tp=2))) == expected


def test_no_gpu_is_guessed_for_a_cpu_server_or_a_dead_rank():
    assert ranks(assign(gpus(1), (scheduler(10, ""),), server(None, device="cpu"))) == [()]
    assert ranks(assign(gpus(1), (scheduler(10, "", gone=True),), server())) == [()]
