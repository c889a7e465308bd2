"""What is told of one GPU: growth, levels, spinning, the plan of the log, and what sets it apart."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from sgmon.analyse.gpu.power_levels import PowerHistory
from sgmon.analyse.gpu.summary import Plan, growth, plan_of, stages, summaries
from sgmon.analyse.series import OLD_POINTS, SERIES_POINTS
from sgmon.analyse.store import Store
from sgmon.model import (
    Event,
    Gpu,
    GpuLoad,
    GpuProcess,
    GpuReading,
    LogState,
    Milestone,
    Process,
    ProcsReading,
    Role,
    Snapshot,
)
from tests.diagnosis.replay import replay

GIB = 1024**3


def track(*values: float | None) -> tuple[tuple[float, float | None], ...]:
    return tuple((float(t), value) for t, value in enumerate(values))


def test_growth_is_a_rate_and_a_time_without_a_step() -> None:
    flat = growth(track(*[10.0 * GIB] * 48))
    assert (flat.rate, flat.flat_s, flat.at_least) == (0.0, 47.0, True)
    stepped = growth(track(GIB, *[10.0 * GIB] * 6))
    assert (stepped.flat_s, stepped.at_least) == (5.0, False)
    assert growth(track(*(GIB * t for t in range(12)))).rate == pytest.approx(GIB)


def test_a_gap_now_is_no_growth_and_no_flat() -> None:
    assert growth(track(GIB, GIB, GIB, GIB, None)) == growth(())


def load(samples: list[tuple[float, int, float]]) -> GpuLoad:
    """(used bytes, percent, watts), one a second."""
    history = PowerHistory()
    for t, (used, util, watts) in enumerate(samples):
        history.add(Gpu(0, used_bytes=int(used), util_percent=util, power_w=watts), float(t))
    return history.load(0)


def busy(util: int, *watts: float) -> str:
    return load([(GIB, 0, 121.0)] * 20 + [(GIB, util, one) for one in watts]).work


def test_pinned_with_flat_low_power_spins() -> None:
    assert busy(100, *[125.0] * 11) == "spins"
    assert busy(100, *[167.0, 167.2] * 6) == "spins"


def test_pinned_at_a_working_level_or_moving_is_work() -> None:
    assert busy(100, *[690.0] * 11) == "works"  # flat at the power cap
    assert busy(100, *[280.0, 265.0] * 6) == "works"
    assert busy(12, *[125.0] * 11) == "works"


def test_too_few_samples_tell_nothing() -> None:
    assert load([(GIB, 100, 125.0)] * 4).work == ""


def test_levels_are_the_cards_own_and_a_spin_is_no_work() -> None:
    work = [(GIB, 60, 480.0), (GIB, 90, 510.0), (GIB, 40, 300.0)]
    seen = load([(0, 0, 79.0)] * 5 + [(GIB, 0, 121.0)] * 20 + work + [(GIB, 100, 125.0)] * 20)
    assert (seen.idle_w, seen.work_w) == (121.0, 510.0)
    assert seen.flat


def milestone(name: str, rank: str, seen_t: float, **fields: str) -> Milestone:
    return Milestone(name, "info", "", 1, rank, None, seen_t, tuple(fields.items()))


LOAD = (
    milestone("dist_init_end", "TP0", 9, gb="0.97"),  # what is used, not what is left
    milestone("load_begin", "TP0", 10, gb="138.31"),
    milestone("load_begin", "TP1", 10, gb="138.00"),
    milestone("load_end", "TP0", 20, gb="130.66"),
    milestone("memory_pool_end", "TP0", 21, gb="12.88"),
    milestone("graph_begin", "TP0", 22),
    milestone("graph_end", "TP0", 30, used="1.95", gb="10.76"),
    milestone("graph_begin", "TP0", 31),
    milestone("graph_end", "TP0", 40, used="0.72", gb="10.04"),
)


def test_the_plan_is_what_the_log_says_in_gib() -> None:
    plan = plan_of(LOAD, ("TP0",))
    assert [round((value or 0) / GIB, 2) for value in (plan.weights_bytes, plan.kv_bytes, plan.graph_bytes)] == [
        7.65,
        117.78,
        2.67,
    ]
    assert plan.free_bytes == 10.04 * GIB
    assert plan_of(LOAD, ("TP1",)) == Plan(free_bytes=138.00 * GIB)
    assert plan_of((milestone("load_end", "", 1, gb="nonsense"),), ()) == Plan()


def test_stages_have_their_times_and_a_second_capture_goes_on() -> None:
    told = stages(Snapshot(log=LogState(milestones=LOAD)), ("TP0",))
    assert [(one.name, one.begin_t, one.end_t) for one in told] == [
        ("weights", 10, 20),
        ("kv", 21, 21),
        ("graphs", 22, 40),
    ]
    going_on = stages(Snapshot(log=LogState(milestones=LOAD[:-1])), ("TP0",))
    assert going_on[-1].end_t is None


def test_lines_from_before_the_watch_are_as_old_as_they_say() -> None:
    early = replace(LOAD[1], t=970.0, seen_t=0.4)
    told = stages(Snapshot(epoch=1000.0, server_seen_t=0.1, log=LogState(milestones=(early,))), ("TP0",))
    assert told[0].begin_t == -30.0


def test_memory_that_differs_from_the_others_is_said() -> None:
    sizes = (76, 76, 60, 76)
    gpus = tuple(
        Gpu(
            i,
            total_bytes=80 * GIB,
            used_bytes=used * GIB,
            processes=(GpuProcess(100 + i, used * GIB, f"TP{i}", "sglang::scheduler"),),
            ranks=(f"TP{i}",),
        )
        for i, used in enumerate(sizes)
    )
    processes = tuple(Process(100 + i, 1, 1, Role.WORKER, f"TP{i}") for i in range(4))
    told = summaries(Snapshot(gpu=GpuReading(gpus), procs=ProcsReading(processes)))
    assert [one.findings for one in told] == [(), (), ("apart",), ()]
    assert told[2].usual_bytes == 76 * GIB
    assert told[0].held[0].kind == "rank"


def test_a_long_history_reaches_back_to_its_start() -> None:
    store = Store(0.0)
    for t in range(4000):
        value = None if 3990 <= t < 3995 else t
        store.step(Event(float(t), "gpu", GpuReading((Gpu(0, used_bytes=value),))))
    points = next(one.points for one in store.snapshot.series if one.name == "gpu0.used")
    assert points[0][0] == 0.0
    assert len(points) <= SERIES_POINTS + 2 * OLD_POINTS + 1
    assert [value for _, value in points[-10:]] == [None] * 5 + [3995.0, 3996.0, 3997.0, 3998.0, 3999.0]
    assert [t for t, _ in points[-SERIES_POINTS:]] == [float(t) for t in range(4000 - SERIES_POINTS, 4000)]
    apart = [b[0] - a[0] for a, b in pairwise(points)]
    assert max(apart) <= 4000 / 180 + 2


def test_two_real_cards_one_spins_in_nccl_and_one_is_waited_for() -> None:
    _, snapshot = replay("h200x2-nccl-spin", until=150.0)
    spinning, waited_for = summaries(snapshot)
    assert (spinning.work, spinning.findings) == ("spins", ("spins",))
    assert (waited_for.work, waited_for.findings) == ("idle", ("waited-for",))
    assert spinning.levels.flat
    assert 120 < (spinning.levels.idle_w or 0) < 123 < (spinning.levels.high_w or 0) < 127


def test_the_plan_of_a_real_start_is_what_the_card_holds() -> None:
    """What the log says is free, and what NVML says, 0.6 GiB apart at the end (the warm-up request took it)."""
    _, snapshot = replay("h200x2-cold", until=164.5)
    for summary in summaries(snapshot):
        plan = summary.plan
        assert round((plan.weights_bytes or 0) / GIB, 2) == 7.65
        assert round((plan.kv_bytes or 0) / GIB, 2) == 117.78
        assert round((plan.graph_bytes or 0) / GIB, 2) == 2.67
        assert abs((plan.free_bytes or 0) - (summary.free_bytes or 0)) < 0.7 * GIB
        assert [stage.name for stage in summary.stages] == ["weights", "kv", "graphs"]
