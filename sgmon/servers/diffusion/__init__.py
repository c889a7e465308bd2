"""SGLang's diffusion server (``sglang.multimodal_gen``): read from its log; its processes are not looked for."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.servers.diffusion.log import RULES
from sgmon.servers.family import unknown_family
from sgmon.servers.phases import Phase, PhaseTable

FAMILY = replace(
    unknown_family(RULES.family),
    label="SGLang diffusion",
    phases=PhaseTable(
        (
            Phase("launch", "launch", "while launching", following="spawn"),
            Phase("spawn", "start of the processes", "while its processes start", following="weights"),
            Phase("weights", "weight load", "in the weight load", following="scheduler_ready"),
            Phase("scheduler_ready", "scheduler start", "in the scheduler start", following="scheduler_ready"),
            Phase("http", "HTTP start", "in the HTTP start", following="ready"),
            Phase("ready", "serving", "while serving", following="serving"),
            Phase("serving", "serving", "while serving", following="serving"),
        )
    ),
    log=RULES,
)
