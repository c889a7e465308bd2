"""Which time-outs run, by the server's version and arguments."""

from __future__ import annotations

from typing import Any

import pytest

from sgmon.analyse.diagnosis.context import Context, context_of
from sgmon.model import LogState, Milestone, Server, ServerArgs, Snapshot
from sgmon.servers import registry

RAY = (("distributed_executor_backend", "ray"),)


def context(family: str, version: str, args: ServerArgs, name: str, phase: str) -> Context:
    """20 s after a milestone."""
    begun = Milestone(name, "begin", phase, 1, seen_t=10.0)
    server = Server(100, 1, args=args, args_source="command line", version=version, family=family)
    return context_of(Snapshot(t=30.0, server=server, log=LogState(milestones=(begun,)), phase=phase))


@pytest.mark.parametrize(
    ("version", "args", "limits"),
    [
        ("0.32.0", {"api_servers": 2}, [600.0]),
        ("0.14.0", {"api_servers": 2}, [600.0]),
        ("0.13.1", {"api_servers": 2}, []),  # it has none
        ("", {"api_servers": 2}, [600.0]),
        ("0.32.0", {"api_servers": 1}, []),
        ("0.32.0", {"raw": RAY}, [1800.0]),
    ],
)
def test_what_ends_vllms_wait_for_its_engine_cores(version: str, args: dict[str, Any], limits: list[float]) -> None:
    seen = context("vllm", version, ServerArgs(**args), "engine_begin", "spawn")
    found = [(clock.left_s, clock.limit_s) for clock in registry.get("vllm").kill_clocks(seen)]
    assert found == [(limit - 20.0, limit) for limit in limits]


@pytest.mark.parametrize(
    ("limit", "phase", "left"), [(60, "dist_init", 40.0), (None, "dist_init", None), (60, "weights", None)]
)
def test_what_ends_sglangs_rendezvous(limit: int | None, phase: str, left: float | None) -> None:
    args = ServerArgs(tp=2, dist_timeout_s=limit)
    seen = context("sglang", "0.5.23", args, "dist_init_begin", phase)
    found = [clock.left_s for clock in registry.get("sglang").kill_clocks(seen) if "rendezvous" in clock.what]
    assert found == ([] if left is None else [left])
