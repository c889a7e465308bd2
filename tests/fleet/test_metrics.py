"""Metrics of recorded starts, read back by Prometheus' own parsers; names and text that mean to do harm."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from sgmon.export.fleet.metrics import LABEL_CHARS, metrics
from sgmon.export.fleet.prometheus import text, textfile
from sgmon.model import Gpu, Snapshot
from tests.fleet.moments import worst
from tests.recorded import moments

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def samples(snapshot: Snapshot) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Name -> (labels, value), as a scraper reads them."""
    body, _ = text(lambda: metrics(snapshot), "")
    read: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in prometheus(body.decode()):
        for one in family.samples:
            read.setdefault(one.name, []).append((one.labels, one.value))
    return read


def one(snapshot: Snapshot, name: str) -> float:
    ((_, value),) = samples(snapshot)[name]
    return value


@pytest.mark.parametrize("name", ["cpu-tp2-live-hang-load", "h200x2-cold", "vllm-h200-tp2-default", "gpu-oom-big"])
def test_every_moment_is_readable_in_both_formats(name: str) -> None:
    for number, moment in enumerate(moments(name)):
        if number % 25 == 0:
            (state,) = [labels["state"] for labels, value in samples(moment)["sgmon_state"] if value]
            assert state == moment.verdict.state
            body, kind = text(lambda now=moment: metrics(now), OPENMETRICS)
            assert kind.startswith("application/openmetrics-text") and list(openmetrics(body.decode()))
            assert list(prometheus(textfile(lambda now=moment: metrics(now)).decode()))


def test_a_hung_start_names_its_rank() -> None:
    hung = worst("cpu-tp2-live-hang-load", "stalled")
    assert samples(hung)["sgmon_rank_culprit"] == [({"node": "", "rank": "TP1"}, 1.0)]
    quiet = {labels["rank"]: value for labels, value in samples(hung)["sgmon_rank_quiet_seconds"]}
    assert quiet["TP1"] > 10.0
    (phase,) = [labels["phase"] for labels, value in samples(hung)["sgmon_phase"] if value]
    assert phase == hung.verdict.phase


def test_a_ready_server_has_its_durations() -> None:
    ready = worst("h200x2-cold", "ready")
    took = {labels["phase"]: value for labels, value in samples(ready)["sgmon_phase_duration_seconds"]}
    assert took["weights"] > 0 and one(ready, "sgmon_ready_after_seconds") > took["weights"]
    assert {labels["gpu"] for labels, _ in samples(ready)["sgmon_gpu_memory_used_bytes"]} == {"0", "1"}


def test_what_is_not_known_has_no_sample() -> None:
    bare = samples(Snapshot(t=3.0))
    assert (
        "sgmon_ready_in_seconds" not in bare
        and "sgmon_server_info" not in bare
        and "sgmon_start_age_seconds" not in bare
    )
    hung = worst("cpu-tp2-live-hang-load", "stalled")
    silent = replace(hung, gpu=replace(hung.gpu, gpus=(Gpu(0), Gpu(1, used_bytes=0))))
    assert [labels["gpu"] for labels, _ in samples(silent)["sgmon_gpu_memory_used_bytes"]] == ["1"], (
        "0 is a measurement"
    )


EVIL = 'x"} 1\n# TYPE sgmon_state gauge\nsgmon_state{state="ready"} 1\n\x1b]0;title\x07\x00hf_' + "A" * 34 + "é" * 500


def test_foreign_text_stays_in_its_label() -> None:
    """A model path that tries to end its label, to start a metric, to speak to a terminal, and holds a token."""
    seen = worst("h200x2-cold", "ready")
    assert seen.server is not None
    server = replace(seen.server, args=replace(seen.server.args, model_path=EVIL), version=EVIL)
    ranks = tuple(replace(rank, name=EVIL, node=EVIL) for rank in seen.ranks)
    lying = replace(seen, server=server, ranks=ranks)
    body, _ = text(lambda: metrics(lying), "")
    read = body.decode()
    assert "hf_AAAA" not in read
    assert not [character for character in read if ord(character) < 32 and character != "\n"]
    ready = [(labels, value) for labels, value in samples(lying)["sgmon_state"] if labels["state"] == "ready"]
    assert ready == [({"state": "ready"}, 1.0)]
    ((labels, _),) = samples(lying)["sgmon_server_info"]
    assert all(len(value) <= LABEL_CHARS for value in labels.values())
    assert list(openmetrics(text(lambda: metrics(lying), OPENMETRICS)[0].decode()))


def test_the_number_of_series_is_bounded_by_the_server() -> None:
    """A long watch makes no more series than a short one: no label holds a pid, a line or a time."""
    counts = [
        sum(len(metric.samples) for metric in metrics(moment))
        for moment in moments("h200x2-cold")
        if moment.verdict.state == "ready"
    ]
    assert counts[-1] <= max(counts[:3]) + 5
