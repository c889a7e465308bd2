"""What stacks of vLLM's processes mean, beside the tables of this folder."""

from __future__ import annotations

from sgmon.servers.family import StackRules
from sgmon.servers.vllm.phases import PHASES

STACKS = StackRules(
    folder="sgmon.servers.vllm",
    during=PHASES.during,
    order=tuple(phase.name for phase in PHASES.phases),
    packages=("vllm/",),
    source_tree=r"vllm/(?:v1|engine|entrypoints|model_executor|distributed|executor|worker)/|vllm/\w+\.py$",
    draft="load_model@speculator.py | load_model@spec_decode/ | *Proposer.load_model | *Speculator.load_model",
)
