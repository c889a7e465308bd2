"""No start that has got ready, or could have, is ever said to fail; those on a held port are, from the first look."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnosis.replay import RECORDINGS, first, replay, states

#: on these another process holds the port
HELD = {"cpu-port-in-use", "cpu-port-in-use-long", "gpu-port-used", "vllm-cpu-port-in-use"}


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_will_fail_is_said_of_held_ports_alone(path: Path) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    changes, _ = replay(name)
    said = first(changes, "will-fail")
    assert (said is not None) == (name in HELD), states(changes)
    if said is not None:
        assert said.verdict.rule == "will-fail-port"
        assert states(changes)[-1] == "crashed"
