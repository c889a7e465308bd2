"""SGLang. Facts: sglang 0.4.1.post7 ... 0.5.23, read in its source and in logs of real starts."""

from __future__ import annotations

from sgmon.model.roles import Role
from sgmon.servers.family import Discovery, Health, OwnTime, ServerFamily
from sgmon.servers.names import SGLANG
from sgmon.servers.sglang import args, args_line, ends, health, launch, ranks, rules, server_args, titles
from sgmon.servers.sglang.clocks import kill_clocks
from sgmon.servers.sglang.log import RULES
from sgmon.servers.sglang.phases import PHASES
from sgmon.servers.sglang.stacks import STACKS
from sgmon.servers.sglang.start import RULES as START

FAMILY = ServerFamily(
    name="sglang",
    label=SGLANG.label,
    package="sglang",
    default_port=server_args.DEFAULT_PORT,
    launched_by="python -m sglang.launch_server, sglang serve, a process titled sglang::http_server",
    start_command=SGLANG.start_command,
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
        by_ray=ranks.by_ray,
        own_env=("SGLANG_", "SGL_"),  # SGLANG_RUN_ID ... (0.5.23: srt/entrypoints/engine.py)
    ),
    role_labels={Role.WORKER: "scheduler", Role.CONTROLLER: "DP controller"},
    folder=__name__,
    health=Health(
        path="/health",
        timeout_s=25.0,
        startup_metric="sglang:startup_time_seconds",
        ok_means_ready=health.ok_means_ready,
        why_503=health.why_503,
    ),
    log=RULES,
    phases=PHASES,
    stacks=STACKS,
    rules=(rules.gate, rules.weights_from_outside),
    kill_clocks=kill_clocks,
    ends=ends.ENDS,
    own_times=(  # sglang/srt/observability/startup_time.py
        OwnTime("load_weight", "weights", "load_begin", "load_end"),
        OwnTime("kv_cache_allocation", "KV cache", "load_end", "memory_pool_end"),
        OwnTime("scheduler_e2e", "scheduler"),
        OwnTime("tokenizer_e2e", "whole engine", "args", "scheduler_ready"),  # its clock begins after its imports
    ),
    duration_flags=frozenset(
        {
            "attention_backend",
            "prefill_attention_backend",
            "decode_attention_backend",
            "sampling_backend",
            "enable_torch_compile",
            "torch_compile_max_bs",
            "disable_cuda_graph",
            "cuda_graph_bs",
            "cuda_graph_max_bs",
            "cuda_graph_max_bs_decode",
            "cuda_graph_backend_prefill",
            "enable_piecewise_cuda_graph",
            "disable_piecewise_cuda_graph",
            "quantization",
            "load_format",
            "model_loader_extra_config",
            "speculative_algorithm",
            "moe_runner_backend",
            "dtype",
            "kv_cache_dtype",
            "skip_server_warmup",
            "device",
        }
    ),
    node_flags=frozenset(
        {"node_rank", "host", "port", "nccl_port", "base_gpu_id", "random_seed", "SGLANG_HOST_IP", "HOST_IP"}
    ),
    env_prefixes=("SGLANG_", "SGL_"),
    packages=("sgl-kernel", "sglang-kernel"),
    start=START,
    compile_caches=(("SGLANG_DG_CACHE_DIR", "~/.cache/deep_gemm", (".lock",)),),
)
