"""Several nodes as text, as JSON, in a recording and in a bundle."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import msgspec
import pytest

from benchmarks.nodes import EPOCH, events, simulated
from sgmon.analyse.nodes.store import NodesStore
from sgmon.collect.source import Source
from sgmon.export.bundle import pack
from sgmon.export.bundle.collect import collect
from sgmon.export.json import status_report
from sgmon.export.json_schema import StatusReport
from sgmon.export.text import as_text
from sgmon.model import Event, Snapshot
from sgmon.recording.codec import read
from sgmon.recording.replay import REWIND, ReplaySource
from sgmon.recording.writer import Recorder
from sgmon.watch.engine import Engine
from tests.nodes_view.cluster import Cluster
from tests.nodes_view.test_verdict import loading


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Two nodes in the weight load, the clock of one off by 100 s; TP3 on node-b is killed, then its link is cut."""
    made = loading(offsets=(0.0, 100.0))
    made["node-b"]["TP3"].does(gone=True, exit_signal=9)
    made.run(4)
    made.cut_link("node-b", "lost", "ssh: connection reset")
    return made.run(3)


@pytest.fixture(scope="module")
def recording(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nodes") / "nodes.jsonl.gz"
    recorder = Recorder(path, 0.0)
    for event in cluster.events:
        recorder.write(event)
    assert recorder.close()
    return path


def replayed(path: Path) -> Engine:
    source: Source = ReplaySource(path, speed=0)
    engine = Engine(source)
    engine.run_here()
    return engine


def test_text_names_the_node_of_everything(cluster: Cluster) -> None:
    text = "\n".join(as_text(cluster.snapshot))
    assert "node    node-a progressing in weights, 2 ranks, clock +0.000 s (known to 10 ms)" in text
    assert "node    node-b no word for 3s: ssh: connection reset, 2 ranks" in text
    assert "ranks   node-a: TP0 pid 101" in text
    assert "ranks   node-b 3s ago: TP3 pid 102" in text or "ranks   node-b 2s ago: TP3 pid 102" in text
    assert "gpu     node-b" in text


def test_json_holds_every_node_and_fits_its_schema(cluster: Cluster) -> None:
    data = msgspec.json.encode(status_report(cluster.snapshot))
    report = msgspec.json.decode(data, type=StatusReport)
    assert [(node.name, node.link, node.heard) for node in report.nodes] == [
        ("node-a", "live", True),
        ("node-b", "lost", False),
    ]
    ranks = {rank.rank: (rank.node, rank.rank_state) for rank in report.ranks if rank.rank}
    assert ranks["TP0"][0] == "node-a" and ranks["TP2"] == ("node-b", "unknown")
    assert {gpu.node for gpu in report.gpus or ()} == {"node-a", "node-b"}
    assert report.nodes[1].silent_s is not None and report.nodes[0].silent_s is None


def test_a_recording_of_several_nodes_replays_to_the_same_snapshot(cluster: Cluster, recording: Path) -> None:
    engine = replayed(recording)
    assert _gist(engine.snapshot) == _gist(cluster.snapshot)
    assert {event.node for event in read(recording)[1]} == {"", "node-a", "node-b"}
    index = engine.log_text
    lines = [line for block in range(index.blocks) for _, line in index.block(block)]
    assert {line.node for line in lines} == {"node-a", "node-b"}
    assert sorted(line.rank for line in lines) == ["TP0"] * 2 + ["TP1"] * 2 + ["TP2"] * 2 + ["TP3"] * 2


def test_a_replay_that_goes_back_shows_the_same_again(recording: Path) -> None:
    engine = replayed(recording)
    first, count = _gist(engine.snapshot), engine.log_text.size
    again = replayed(recording)
    again._control(Event(0.0, REWIND))
    for event in read(recording)[1]:
        again._take(event)
    assert _gist(again.snapshot) == first and again.log_text.size == count


def test_a_bundle_has_a_folder_a_node(cluster: Cluster, recording: Path) -> None:
    materials = collect(cluster.snapshot, recording.read_bytes(), live=False)
    bundle = pack(materials, name="report", salt="x")
    with zipfile.ZipFile(io.BytesIO(bundle.data)) as archive:
        names = set(archive.namelist())
        page = archive.read("report/report.md").decode()
        log_b = archive.read("report/node-b/log.txt").decode()
        status = msgspec.json.decode(archive.read("report/node-b/status.json"), type=StatusReport)
    assert {"report/status.json", "report/recording.jsonl.gz", "report/node-a/log.txt"} <= names
    assert "TP3] Load weight begin" in log_b and "TP0]" not in log_b
    assert "node-b" in page and "Nodes side by side" in page
    assert status.headline.startswith("TP3 (pid 102) was killed by SIGKILL")


def _gist(snapshot: Snapshot) -> object:
    verdict = snapshot.verdict
    ranks = [(rank.node, rank.name, rank.state, rank.phase) for rank in snapshot.ranks]
    return verdict.state, verdict.headline, verdict.nodes, ranks, [view.heard for view in snapshot.nodes]


def test_the_text_of_many_nodes_has_one_line_for_what_is_equal() -> None:
    store = NodesStore(EPOCH)
    for event in events(simulated(64, 8), 40.0):
        store.step(event)
    short, whole = as_text(store.snapshot, everything=False), as_text(store.snapshot)
    odd, node = store.snapshot.verdict.odd_ranks[0], store.snapshot.verdict.nodes[0]
    assert len(short) < 30 and len(whole) > 1000
    assert any(line.startswith(f"ranks   {node}: {odd} pid ") for line in short)
    assert any(line.startswith("ranks   511 processes on 64 nodes") for line in short)
    assert any(line.startswith("gpu     511 GPUs on 64 nodes") for line in short)
    assert "--all" in short[-1] and "--all" not in whole[-1]
    assert len(status_report(store.snapshot).ranks) >= 512
