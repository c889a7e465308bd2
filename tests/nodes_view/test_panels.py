"""The panels with several nodes: what they select and how many rows they need."""

from __future__ import annotations

import pytest

from benchmarks.nodes import EPOCH, events, simulated
from sgmon.analyse.nodes.store import NodesStore
from sgmon.model import LogReading, Snapshot
from tests.nodes_view.cluster import Cluster
from tests.nodes_view.test_verdict import all_wait, loading
from widgets import gpu_layout, gpu_view, nodes, startup, worker_columns, workers
from widgets.gpu_rows import fold
from widgets.line import plain
from widgets.log_facts import LogFacts


@pytest.fixture(scope="module")
def many() -> Snapshot:
    """16 nodes of 8 ranks, one of which has not come to the collective."""
    store = NodesStore(EPOCH)
    for event in events(simulated(16, 8), 40.0):
        store.step(event)
    return store.snapshot


def rows(lines: object) -> list[str]:
    return [plain(line) for line in lines]  # type: ignore[attr-defined]


def test_the_ranks_of_all_nodes_have_a_node_column() -> None:
    cluster = loading()
    view = workers.select(cluster.snapshot)
    assert [(row.label, row.node) for row in view.rows if row.is_rank] == [
        ("TP0", "node-a"),
        ("TP1", "node-a"),
        ("TP2", "node-b"),
        ("TP3", "node-b"),
    ]
    assert len({row.key for row in view.rows}) == len(view.rows)  # equal pids on two machines are two rows
    layout = worker_columns.plan(view.rows, 120)
    assert "node" in plain(worker_columns.header_line(layout))
    assert "node-b" in plain(worker_columns.row_line(view.rows[-1], layout, 120))


def test_a_single_machine_has_no_node_column() -> None:
    from tests.diagnosis.world import World

    world = World(tp=2).to("weights").run(3)
    view = workers.select(world.store.snapshot)
    assert "node" not in plain(worker_columns.header_line(worker_columns.plan(view.rows, 200)))


def test_ranks_of_a_silent_node_are_unknown() -> None:
    cluster = loading()
    cluster.cut_link("node-b")
    cluster.run(15)
    states = {row.label: row.state for row in workers.select(cluster.snapshot).rows if row.is_rank}
    assert states["TP2"] == states["TP3"] == "unknown" and "unknown" not in (states["TP0"], states["TP1"])
    view = nodes.select(cluster.snapshot)
    assert view.rows[0].names == ("node-b",) and view.rows[0].silent_s is not None
    assert any("no word for" in text for text in rows(nodes.paint(view, 80, 4)))


def test_two_servers_with_a_rank_of_the_same_name_share_no_row() -> None:
    cluster = Cluster(2, 2, own_servers=True)
    first, second = cluster.worlds.values()
    first.to("weights")
    second.to("graphs")
    cluster.run(5)
    words = rows(startup.paint(startup.select(cluster.snapshot), 100, 9))
    assert [" ".join(row.split()[:2]) for row in words if "TP0-1" in row] == ["node-a TP0-1", "node-b TP0-1"]
    assert words[1].count("✓") < words[2].count("✓")
    first.to("graphs")
    cluster.run(5)
    words = rows(startup.paint(startup.select(cluster.snapshot), 100, 9))
    assert sum("2 nodes TP0-1" in row for row in words) == 1


def test_a_cut_name_keeps_a_gap_to_the_next_column() -> None:
    named = loading().snapshot
    row = workers.select(named).rows[-1]._replace(label="TP0-3,12-15,33,40-152", state="importing soon")
    text = plain(worker_columns.row_line(row, worker_columns.plan([row], 100), 100))
    assert "… node-b" in text and "importin… " in text


def test_the_log_of_several_nodes_counts_from_its_first_line() -> None:
    from sgmon.analyse.log.nodes_index import NodesLogIndex
    from tests.nodes_view.test_log_index import line, zero

    index = NodesLogIndex(epoch=zero())
    index.follow_node(LogReading("/a.log", text=line(3, "first", zone_s=3600.0)), "node-a", 4.0, zero(3600.0))
    index.settle(10.0)
    assert LogFacts(index).view(loading().snapshot).first_t == zero() + 3


def test_only_the_culprit_of_the_right_node_is_marked() -> None:
    cluster = Cluster()
    cluster.to("weights").run(5)
    all_wait(cluster)
    cluster["node-b"]["TP3"].does(state="T")
    cluster.run(3)
    assert [row.label for row in workers.select(cluster.snapshot).rows if row.odd] == ["TP3"]
    assert [row.names for row in nodes.select(cluster.snapshot).rows if row.odd] == [("node-b",)]


def test_128_gpus_fold_to_a_few_rows_the_odd_ones_first(many: Snapshot) -> None:
    view = gpu_view.select(many)
    assert len(view.rows) == 128 and view.rows[0].stands_out
    folded = fold(view.rows)
    assert len(folded) <= 6 and sum(len(row.indexes) for row in folded) == 128
    text = rows(gpu_layout.paint(view, 100, 12))
    assert any("node-08 3" in line and "TP67" in line for line in text)
    assert any("127 on 16 nodes" in line for line in text)


def test_16_nodes_fold_to_what_differs_and_a_count(many: Snapshot) -> None:
    view = nodes.select(many)
    text = rows(nodes.paint(view, 90, 6))
    assert "node-08" in text[0] and len(text) <= 6
    assert any("15 nodes" in line for line in text)
    assert any("0.5.22 on node-01, 0.5.23 ×15" in line for line in text)


def test_zoomed_the_values_stand_side_by_side_and_what_differs_comes_first() -> None:
    store = NodesStore(EPOCH)
    for event in events(simulated(2, 4), 5.0):
        store.step(event)
    text = rows(nodes.paint(nodes.select(store.snapshot), 120, 40))
    table = [line for line in text if "SGLang" in line or "node_rank" in line or "driver" in line]
    assert table[0].startswith("≠ SGLang") and "0.5.23" in table[0] and "0.5.22" in table[0]
    assert any(line.startswith("  node_rank") for line in table)
    assert any("570.86.15" in line for line in table)
