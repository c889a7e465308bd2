"""The phases of SGLang's start.

Silences: seconds without any sign of activity in healthy starts (0.5.17 on H200, 0.5.23 on CPU), rounded up; of the
log: imports 24-33 s, 8 min after the last shard (expert repacking), 84 s in the first captured shape of a cold start.
"""

from __future__ import annotations

from sgmon.servers.phases import READY, SERVING, Phase, PhaseTable, draft

_DIST = Phase(
    "dist_init",
    "distributed initialisation",
    "in the distributed initialisation",
    "dist",
    "dist",
    "weights",
    silence_s=8.0,
    log_silence_s=15.0,
    cpu_alone_s=45.0,
)
_WEIGHTS = Phase(
    "weights",
    "weight load",
    "in the weight load",
    "weights",
    "wght",
    "kv_cache",
    silence_s=9.0,
    log_silence_s=482.0,
    cpu_alone_s=240.0,
)
_KV_CACHE = Phase(
    "kv_cache",
    "KV cache",
    "in the KV cache allocation",
    "kv",
    "kv",
    "graphs",
    silence_s=6.0,
    log_silence_s=60.0,
    cpu_alone_s=90.0,
)
_GRAPHS = Phase(
    "graphs",
    "graph capture",
    "in the graph capture",
    "graphs",
    "grph",
    "scheduler_ready",
    silence_s=8.0,
    log_silence_s=85.0,
    cpu_alone_s=170.0,
)

PHASES = PhaseTable(
    (
        Phase(
            "launch",
            "launching",
            "while launching",
            following="spawn",
            silence_s=5.0,
            log_silence_s=25.0,
        ),
        Phase(
            "spawn",
            "importing",
            "while importing",
            "spawn",
            "spwn",
            silence_s=5.0,
            log_silence_s=33.0,
        ),
        _DIST,
        _WEIGHTS,
        _KV_CACHE,
        _GRAPHS,
        draft(_DIST, "draft_weights", "d.dist", "d.di"),
        draft(_WEIGHTS, "kv_cache", "d.weights", "d.we"),
        draft(_KV_CACHE, "draft_graphs", "d.kv", "d.kv"),
        draft(_GRAPHS, "scheduler_ready", "d.graphs", "d.gr"),
        Phase(
            "scheduler_ready",
            "scheduler start",
            "in the scheduler start",
            "sched",
            "schd",
            "http",
            silence_s=6.0,
            log_silence_s=20.0,
            cpu_alone_s=60.0,
        ),
        Phase(
            "disagg",
            "disaggregation set-up",
            "in the disaggregation set-up",
            "disagg",
            "disg",
            "http",
            silence_s=10.0,
            optional=True,
        ),
        Phase(
            "http",
            "HTTP start",
            "while the HTTP server starts",
            "http",
            "http",
            "warmup",
            silence_s=6.0,
            log_silence_s=20.0,
            cpu_alone_s=60.0,
            launcher=True,
        ),
        Phase(
            "warmup",
            "warm-up",
            "in the warm-up",
            "warmup",
            "warm",
            "ready",
            silence_s=8.0,
            log_silence_s=85.0,
            cpu_alone_s=170.0,
            launcher=True,
        ),
        READY,
        SERVING,
    ),
    engine_ready="scheduler_ready",
    leader_only=frozenset(
        {
            "nccl_comm",
            "weights_format",
            "weights_progress",
            "weights_100",
            "kv_profile",
            "graph_progress",
            "custom_ar_disabled",
            "mq_connect",
        }
    ),
)
