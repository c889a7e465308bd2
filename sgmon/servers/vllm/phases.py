"""The phases of vLLM's start.

Silences: seconds without any sign of activity in healthy starts (0.22 on H200, 0.32 on CPU), rounded up; of the log:
imports 15-140 s on a busy machine, 11.5 s of Dynamo and 25 s of inductor, 16 s after the capture.
"""

from __future__ import annotations

from sgmon.servers.phases import READY, SERVING, Phase, PhaseTable, draft

_WEIGHTS = Phase(
    "weights",
    "weight load",
    "in the weight load",
    "weights",
    "wght",
    "profile",
    silence_s=9.0,
    log_silence_s=482.0,
    cpu_alone_s=240.0,
)

PHASES = PhaseTable(
    (
        Phase(
            "launch",
            "launching",
            "while launching",
            following="spawn",
            silence_s=6.0,
            log_silence_s=140.0,
            cpu_alone_s=240.0,
        ),
        Phase(
            "spawn",
            "importing",
            "while importing",
            "spawn",
            "spwn",
            silence_s=6.0,
            log_silence_s=140.0,
            cpu_alone_s=240.0,
        ),
        Phase(
            "dist_init",
            "distributed initialisation",
            "in the distributed initialisation",
            "dist",
            "dist",
            "weights",
            silence_s=8.0,
            log_silence_s=20.0,
            cpu_alone_s=45.0,
        ),
        _WEIGHTS,
        draft(_WEIGHTS, "profile", "d.weights", "d.we"),
        Phase(
            "compile",
            "compilation",
            "in the compilation",
            "compile",
            "comp",
            "profile",
            silence_s=8.0,
            log_silence_s=120.0,
            cpu_alone_s=240.0,
            optional=True,
        ),
        Phase(
            "profile",
            "profiling run",
            "in the profiling run",
            "profile",
            "prof",
            "kv_cache",
            silence_s=8.0,
            log_silence_s=85.0,
            cpu_alone_s=170.0,
        ),
        Phase(
            "kv_cache",
            "KV cache",
            "in the KV cache",
            "kv",
            "kv",
            "engine_end",
            silence_s=8.0,
            log_silence_s=60.0,
            cpu_alone_s=90.0,
        ),
        Phase(
            "graphs",
            "graph capture",
            "in the graph capture",
            "graphs",
            "grph",
            "engine_end",
            silence_s=8.0,
            log_silence_s=85.0,
            cpu_alone_s=170.0,
        ),
        Phase(
            "engine_end",
            "engine warm-up",
            "in the engine warm-up",
            "engine",
            "engn",
            "http",
            silence_s=8.0,
            log_silence_s=60.0,
            cpu_alone_s=120.0,
        ),
        Phase(
            "http",
            "HTTP start",
            "in the HTTP start",
            "http",
            "http",
            "ready",
            silence_s=8.0,
            log_silence_s=60.0,
            cpu_alone_s=120.0,
            launcher=True,
        ),
        READY,
        SERVING,
    ),
    engine_ready="http",
    leader_only=frozenset(
        {
            "nccl_comm",
            "weights_format",
            "weights_progress",
            "weights_100",
            "graph_progress",
            "mq_connect",
        }
    ),
)
