"""What SGLang's arguments and files say of a start that has not happened yet.

Facts: sglang 0.5.23 srt/server_args.py, srt/arg_groups/fields/*.py, srt/model_loader/weight_utils.py,
srt/models/registry.py, srt/configs/update_config.py, srt/entrypoints/http_server.py.
"""

from __future__ import annotations

from collections.abc import Callable

from sgmon.model import ServerArgs
from sgmon.servers.sglang.memory import RULES as MEMORY
from sgmon.servers.sglang.ranks import gpu_of, rank_labels
from sgmon.servers.start_rules import Beside, Defect, SharedMemory, StartOptions, StartRules

#: the least that a file of /dev/shm takes
PAGE = 4096


def options(args: ServerArgs) -> StartOptions:
    """From the arguments as found, which the log's line gives with all defaults ("None", "False")."""
    raw = dict(args.raw)

    def text(name: str) -> str:
        value = raw.get(name, "")
        return "" if value in ("None", "null") else value

    def switch(name: str) -> bool:
        return raw.get(name, "").lower() in ("true", "1", "yes")

    offload = text("cpu_offload_gb") not in ("", "0") or text("offload_group_size") not in ("", "-1", "0")
    return StartOptions(
        tokenizer_path=text("tokenizer_path"),
        no_tokenizer=switch("skip_tokenizer_init"),
        trust_remote_code=switch("trust_remote_code"),
        quantization=text("quantization"),
        memory_share=_share(text("mem_fraction_static")),
        draft_path=text("speculative_draft_model_path"),
        chat_template=text("chat_template"),
        experts_divided=args.ep > 1,
        any_nodes=text("ep_join_mode") == "scale",
        partly_elsewhere=offload or text("torchao_config") != "" or text("weight_cache_mode") not in ("", "off"),
    )


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 < share <= 1 else None


def shares_port(args: ServerArgs) -> bool:
    """Only with --enable-http-worker-reuseport does uvicorn's socket set SO_REUSEPORT (0.5.23 http_server.py)."""
    return dict(args.raw).get("enable_http_worker_reuseport", "").lower() in ("true", "1")


def pads_heads(args: ServerArgs) -> bool:
    """On a CPU heads are padded to fit (``adjust_config_with_unaligned_cpu_tp``); other devices than CUDA are not
    known. Context parallelism divides the ranks of the attention once more."""
    return args.device not in ("", "cuda") or dict(args.raw).get("attn_cp_size", "1") not in ("", "1", "None")


def shared_memory(args: ServerArgs, get: Callable[[str], str]) -> SharedMemory | None:
    """The first rank of a group writes some bytes there, by which the others know that they are on its node (0.5.23
    distributed/parallel_state.py, ``in_the_same_node_as``). A page that cannot be had is a SIGBUS."""
    if args.tp // args.nnodes < 2 or get("SGLANG_USE_MESSAGE_QUEUE_BROADCASTER").lower() in ("0", "false"):
        return None
    why = "the first rank writes there to find who is on its node, and the kernel ends it with SIGBUS"
    return SharedMemory(PAGE, "shm-page", "the first rank", why)


def gpus(args: ServerArgs, version: str) -> tuple[int | None, ...]:
    return tuple(gpu_of(args, rank) for rank in rank_labels(args, version))


RULES = StartRules(
    options=options,
    stages=(
        ("arguments", "launch"),
        ("tokenizer", "spawn"),  # of the launcher and of each rank, whoever comes first
        ("template", "spawn"),  # of the launcher, once it has started its ranks
        ("rendezvous", "dist_init"),
        ("ranks", "dist_init"),
        ("weights", "weights"),
        ("kv_cache", "kv_cache"),
        ("port", "http"),
    ),
    file_formats=frozenset({"auto", "safetensors"}),
    unread_formats=frozenset({"dummy", "remote", "remote_instance"}),
    share_of="free",
    shares_port=shares_port,
    pads_heads=pads_heads,
    gpus=gpus,
    shared_memory=shared_memory,
    rendezvous_variable="SGLANG_DISTRIBUTED_INIT_METHOD_OVERRIDE",
    models="srt/models",
    model_class=r"^EntryClass\s*=\s*(?:\[(?P<list>[^\]]*)\]|(?P<one>\w+))",
    heads_assert=r"assert (?:self\.total_num_(?:kv_)?heads % \w+|\w+ % self\.total_num_kv_heads) == 0",
    proofs=(
        ("missing-shard", "srt/model_loader/weight_utils.py", "(incomplete download?)"),
        ("index-read", "srt/model_loader/weight_utils.py", 'json.load(f)["weight_map"]'),
        ("balanced-memory", "srt/distributed/bootstrap.py", "pre_model_load_memory < local_gpu_memory * 0.9"),
        (
            "shm-page",
            "srt/distributed/device_communicators/shm_broadcast.py",
            "in_the_same_node_as(pg, source_rank=writer_rank)",
        ),
        ("nodes-divide", "srt/arg_groups/validation_hook.py", "(cfg.tp_size * cfg.pp_size) % cfg.nnodes == 0"),
        ("nodes-divide", "srt/server_args.py", "(self.tp_size * self.pp_size) % self.nnodes == 0"),
        ("template-file", "srt/parser/template_manager.py", "or a valid chat template file path"),
        ("template-file", "srt/managers/template_manager.py", "or a valid chat template file path"),
    ),
    memory=MEMORY,
    demands=(
        "srt/entrypoints/engine.py",
        r'assert_pkg_version\(\s*"(?P<name>[\w.-]+)",\s*"(?P<version>[\w.]+)"',
    ),
    always_demanded=frozenset({"sglang-kernel", "sgl-kernel"}),
    no_demands="SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK",
    defects=(
        Defect(
            (0, 4, 10, 2),
            (0, 4, 10, 2),
            "with --skip-server-warmup /health stays at 503",
            "sglang 0.4.10.post2, http_server.py",
            "Leave --skip-server-warmup out, or take another version",
            lambda args: args.skip_server_warmup,
        ),
        Defect(
            (0, 5, 6),
            (0, 5, 12),
            "torch 2.9.1 beside cuDNN below 9.15: Conv3d is slow, and the server may refuse to start",
            "https://github.com/sgl-project/sglang/pull/14119",
            "Install nvidia-cudnn 9.16 or newer",
            beside=(
                Beside(("torch",), (2, 9, 1), (2, 9, 1, 1 << 30)),
                Beside(("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"), (9,), (9, 14, 1 << 30)),
            ),
        ),
    ),
)
