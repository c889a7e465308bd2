"""What stacks of SGLang's processes mean, beside the tables of this folder."""

from __future__ import annotations

from sgmon.servers.family import StackRules
from sgmon.servers.sglang.phases import PHASES

STACKS = StackRules(
    folder="sgmon.servers.sglang",
    during=PHASES.during,
    # by stacks, not by log lines: a rank enters its event loop ("scheduler_ready") after it has set up disaggregation
    order=(
        "launch",
        "spawn",
        "dist_init",
        "draft_dist_init",
        "weights",
        "draft_weights",
        "kv_cache",
        "draft_kv_cache",
        "graphs",
        "draft_graphs",
        "disagg",
        "scheduler_ready",
        "http",
        "warmup",
        "ready",
        "serving",
    ),
    packages=("sglang/", "sgl_kernel/"),
    source_tree=r"sglang/(?:srt|cli|kernels|jit_kernel|multimodal_gen|lang)/|sglang/\w+\.py$",
    draft=(
        "EAGLEWorker.__init__ | *Draft*.__init__ | EagleDraft* | EAGLEWorker.init_cuda_graphs"
        " | maybe_init_draft_worker | init_draft_*"
        " | __init__@speculative/"
        " | *@speculative/*draft*graph_runner.py"
        " | StandaloneWorker.__init__ | MultiLayerEagle*.__init__ | FrozenKVMTPWorker.__init__"
    ),
    loops=(
        "event_loop_* | recv_requests | dispatch_event_loop | run_event_* | get_next_batch_to_run"
        " | get_new_batch_prefill | _get_new_batch_prefill_raw | loop_for_forward"
    ),
    serving="*@uvicorn/ < launch_server | run@runners.py < _setup_and_run_http_server | *@granian/",
)
