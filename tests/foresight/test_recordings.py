"""No start that has got ready, or could have, is ever said to fail; those that are lost from the beginning are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnosis.replay import first, replay, states
from tests.recorded import RECORDINGS

#: these are lost: another process holds the port, a shard is missing, the model is not here and the hub is not asked,
#: the folder has no config, node 0's own name cannot be resolved
LOST = {
    "cpu-port-in-use": "port",
    "cpu-port-in-use-long": "port",
    "gpu-port-used": "port",
    "vllm-cpu-port-in-use": "port",
    "vllm-live-port-held": "port",
    "vllm-live-shard-missing": "shard-missing",
    "vllm-live-no-model": "model-offline",
    "h200x2-live-no-config": "config",
    "cpu-live-unresolved-node0": "unresolved",
    "h200x2-live-held": "gpu-balance",
    "h200-live-too-large": "gpu-memory",
    "vllm-live-h200-held": "gpu-share",
    "vllm-live-h200-too-large": "gpu-memory",
}


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_will_fail_is_said_of_lost_starts_alone(path: Path) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    changes, _ = replay(name)
    said = first(changes, "will-fail")
    assert (said is not None) == (name in LOST), states(changes)
    if said is not None:
        assert said.verdict.rule == f"will-fail-{LOST[name]}"
        assert states(changes)[-1] == "crashed"
