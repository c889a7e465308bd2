"""What stacks of vLLM's processes mean, beside the tables of this folder."""

from __future__ import annotations

from sgmon.servers.family import StackRules
from sgmon.servers.vllm.phases import PHASES

STACKS = StackRules(
    folder="",
    order=tuple(phase.name for phase in PHASES.phases),
    packages=("vllm/",),
    source_tree=r"vllm/(?:v1|engine|entrypoints|model_executor|distributed|executor|worker)/|vllm/\w+\.py$",
)
