"""What differs between nodes, and what is meant to."""

from __future__ import annotations

from types import SimpleNamespace

from sgmon.analyse.nodes.compare import _environment
from sgmon.servers import registry


def test_a_node_s_own_address_in_its_environment_is_no_difference() -> None:
    views = [
        SimpleNamespace(snapshot=SimpleNamespace(preflight=SimpleNamespace(key="k", env=env)))
        for env in ((("NCCL_DEBUG", "INFO"), ("VLLM_HOST_IP", "10.0.0.1")), (("VLLM_HOST_IP", "10.0.0.2"),))
    ]
    rows = _environment(views, registry.get("vllm").node_flags)  # type: ignore[arg-type]
    assert {row.name: row.differs for row in rows} == {"NCCL_DEBUG": True, "VLLM_HOST_IP": False}
