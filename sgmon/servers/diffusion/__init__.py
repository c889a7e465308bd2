"""SGLang's diffusion server (``sglang.multimodal_gen``): its log, its processes, its port."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.model.roles import Role
from sgmon.servers.diffusion import processes
from sgmon.servers.diffusion.log import RULES, args_in
from sgmon.servers.family import Discovery, unknown_family
from sgmon.servers.phases import Phase, PhaseTable

FAMILY = replace(
    unknown_family(RULES.family),
    label="SGLang diffusion",
    package="sglang",
    default_port=processes.DEFAULT_PORT,
    discovery=Discovery(
        recognise=processes.recognise,
        role_of=processes.role_of,
        role_of_comm=processes.role_of_comm,
        rank_of=processes.rank_of,
        expected_children=processes.expected_children,
        parse_args=processes.parse_args,
        args_from_log=args_in,
        full_flag=processes.full_flag,
        gpu_of=processes.gpu_of,
    ),
    role_labels={Role.WORKER: "worker"},
    env_prefixes=("SGLANG_", "SGL_"),
    phases=PhaseTable(
        (
            Phase("launch", "launch", "while launching", following="spawn"),
            Phase("spawn", "start of the processes", "while its processes start", following="weights"),
            Phase("weights", "weight load", "in the weight load", following="scheduler_ready"),
            Phase("scheduler_ready", "scheduler start", "in the scheduler start", following="scheduler_ready"),
            Phase("http", "HTTP start", "in the HTTP start", following="ready"),
            Phase("warmup", "warm-up", "in the warm-up", following="ready"),
            Phase("ready", "serving", "while serving", following="serving"),
            Phase("serving", "serving", "while serving", following="serving"),
        )
    ),
    log=RULES,
)
