"""How vLLM writes its log.

``(NAME pid=N) LEVEL MM-DD HH:MM:SS [file.py:123] message``; without the first part in older versions, without the
opening bracket up to 0.7.3. vllm 0.5.5 ... 0.33.0 logger.py, logging_utils/formatter.py.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sgmon.servers.family import LogRules
from sgmon.servers.vllm.args_line import KEY, parse_args_line

_TOKENS = re.compile(r"_(DP|PP|PCP|TP|DCP)(\d+)")
_NAME = r"\((?P<ranks>[\w :=-]*?) pid=\d+\) "
_STAMP = r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d) \[?[\w./-]+:\d+\] ?"


@lru_cache(maxsize=1024)
def rank_of_name(name: str) -> str:
    """ "Worker_DP0_TP1" -> "DP0 TP1"; "VllmWorker rank=1" -> "TP1"; "" for other processes and an only rank."""
    old = re.search(r"VllmWorker rank=(\d+)", name)
    if old:
        return f"TP{old[1]}"
    return " ".join(token + number for token, number in _TOKENS.findall(name)) if name.startswith("Worker") else ""


RULES = LogRules(
    family="vllm",
    folder="sgmon.servers.vllm",
    record=re.compile(f"(?:{_NAME})?{_STAMP}"),
    inner=re.compile(r"(?!)"),
    rank=rank_of_name,
    # not its logger's form alone: SGLang imports vllm, which then logs in that form
    speaks=re.compile(
        r"\((?:APIServer|EngineCore|(?:Vllm)?Worker|DPSupervisor|DPCoordinator)(?:[_-]\w+)?(?: rank=\d+)? pid=\d+\) "
        r"|vLLM API server version|Initializing (?:a V[01]|an) LLM engine \(v"
    ),
    args=parse_args_line,
    restart=KEY,
    version=re.compile(r"\b(?:vLLM API server version|V[01] LLM engine \(v|version) ?v?(\d+\.\d+\.\d+(?:\.?\w+)?)"),
    fatal_header=re.compile(
        r"WorkerProc failed to start|EngineCore failed to start|EngineCore encountered a fatal error"
    ),
    benign_header=re.compile(r"(?!)"),
    died=re.compile(r"Worker proc VllmWorker-(?P<n>\d+) died unexpectedly"),
    more=("engine (v", "server version", " version "),
    bars=(("checkpoint shards", "weights_progress"), ("Capturing", "graph_progress")),
    probe=re.compile(r'"GET /(?:health|metrics)(?:\?\S*)? HTTP/'),
    probe_keys=('"GET /health', '"GET /metrics'),
)
