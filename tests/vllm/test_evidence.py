"""What vLLM's rules rest on and advise, and from which version on a limit is there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.model import Event, Role, ServerArgs, ServerReading
from sgmon.servers.vllm.ranks import _external
from tests.vllm.test_rules import ENGINE, Start, engine, worker


@pytest.mark.parametrize(
    ("raw", "external"),
    [
        ((), False),
        ((("data_parallel_rank", "0"),), True),
        ((("data_parallel_external_lb", "True"),), True),
        ((("data_parallel_external_lb", "False"),), False),
    ],
)
def test_replicas_that_another_program_balances(raw: tuple[tuple[str, str], ...], external: bool) -> None:
    assert _external(ServerArgs(raw=raw)) is external


@pytest.mark.parametrize(("version", "limited"), [("0.13.2", False), ("0.14.0", True), ("0.32.0", True), ("", True)])
def test_the_clock_of_api_servers_is_there_from_0_14_on(version: str, limited: bool) -> None:
    below = (engine(510, "DP0"), engine(511, "DP1"), worker(520, "DP0"), worker(521, "DP1", 511))
    start = Start("-dp 2 --api-server-count 2", *below)
    start.store.step(Event(0.0, "server", ServerReading(replace(start.server, version=version))))
    start.log("EngineCore_DP0", ENGINE.replace("0.32.0", version or "0.32.0"))
    facts = start.run(60).evidence
    assert any("VLLM_ENGINE_READY_TIMEOUT_S" in fact.text for fact in facts) is limited


def test_a_missing_head_is_named_with_its_address_and_a_way_to_it() -> None:
    start = Start("--headless -dp 2 -dpl 1 -dpr 1 -dpa 10.0.0.1", engine(510, "DP1", Role.WORKER))
    found = start.run(40)
    assert "10.0.0.1" in found.headline and found.confidence == 0.8
    assert any(one.signal == "args" and "--headless" in one.text for one in found.evidence)
    assert "head" in found.next[0].text
