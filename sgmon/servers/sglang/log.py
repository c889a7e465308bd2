"""How SGLang writes its log.

Its prefix is ``[%(asctime)s{ranks}] message`` without a level (sglang srt/utils/common.py ``configure_logger``);
ranks come in any order: the token order differs between versions.
"""

from __future__ import annotations

from functools import lru_cache

from sgmon.patterns import regex
from sgmon.servers.family import LogRules, OtherText
from sgmon.servers.sglang.args_line import parse_server_args

_TOKEN = r"(?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+"
_TOKENS = regex(_TOKEN)


@lru_cache(maxsize=1024)
def canonical_rank(ranks: str) -> str:
    """ "TP0 EP0" -> "TP0": an EP rank is its TP rank, no process of its own; other tokens stay as they are."""
    tokens = _TOKENS.findall(ranks)
    if any(token.startswith("TP") for token in tokens):
        tokens = [token for token in tokens if not token.startswith("EP")]
    return " ".join(tokens)


RULES = LogRules(
    family="sglang",
    folder="sgmon.servers.sglang",
    # the date may be short ("12-16", diffusion server) or absent (retyped logs); "^@" is a NUL as less shows it;
    # forks write a word of theirs before the ranks
    record=regex(
        r"(?:\^@)*\[(?P<time>(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d:\d\d)(?:[.,]\d+)?(?: \w+\.\w+(?= [A-Z_]+\d))?"
        r"(?P<ranks>(?: " + _TOKEN + r")*)\] ?"
    ),
    inner=regex(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: " + _TOKEN + r")*\] |\[rank\d+\]:\[[EWIF]\d"),
    # a retyped log may have lost its times
    bare_rank=regex(
        r"(?P<rank>Rank \d+): (?=[a-z])|\[(?P<gpu>gpu(?:_id)?=\d+)\] |\[(?P<ranks>"
        + _TOKEN
        + "(?: "
        + _TOKEN
        + r")*)\] "
    ),
    rank=canonical_rank,
    # (?=[...]): what it can begin with; at any other character the search goes on at once
    speaks=regex(
        r"(?=[\[sFl|])(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: "
        + _TOKEN
        + r")*\] (?!LMCache )|server_args=(?:ServerArgs\(|\{)|\[(?:TP|DP|PP)\d+(?: [A-Z_]+\d+)*\] "
        # a start that fails before its first record: the files of its traceback, argparse's own line
        r"|File \\?\"[^\"\n]*/sglang/(?:srt|cli|launch_server|lang|api|__init__)\b"
        r"|\b(?:launch_server\.py|sglang serve): error: |\| sglang\.srt\.\w)"
    ),
    args=parse_server_args,
    restart="server_args=",
    sizes=(("tp", "tp_size"), ("dp", "dp_size"), ("pp", "pp_size"), ("ep", "ep_size"), ("nnodes", "nnodes")),
    # the last three: check_env's, an image's tag, a wheel's or a folder's name
    version=regex(
        r"\bsglang(?:==|[ _]version[=: ]+'?|: |:v|-)"
        r"(\d+\.\d+\.\d+(?:\.?post\d+)?(?:\.?dev\w*)?(?:\+\w+)?)"
    ),
    more=(
        "hit an exception",
        "Context: ",
        "server_args=",
        "sglang==",
        "sglang version",
        "sglang_version",
        "sglang: ",
        "sglang:v",
        "sglang-0",
    ),
    gates=(
        *("rror", "ing ", "ted ", "exit", "apture", "ailed", " is ", "emory", "ation", "not ", "server", "tart"),
        *(
            "weight ",
            "device",
            "nit ",
            "ound",
            "out ",
            "arning",
            " call",
            "t co",
            "eceived",
            "nd of ",
            "pped",
            " in ",
        ),
        *(
            "ph end.",
            " by pee",
            "DeepGEM",
            "omplete",
            " exceed",
            "loading",
            "sfer_en",
            " leaked",
            "l_info ",
            "sglang",
        ),
        *("client", "shard", "ult e", "ERROR", "acke", "tore", "able", "with", "NCCL", "nccl", "Bytes", "exceeded"),
        "WARN",
    ),
    bars=(
        ("checkpoint shards", "weights_progress"),
        ("Multi-thread loading", "weights_progress"),
        ("Fastsafetensor", "weights_progress"),
        ("Runai Model Streamer", "weights_progress"),
        ("InstantTensor", "weights_progress"),
        ("Loading safetensors", "weights_progress"),
        ("Capturing", "graph_progress"),
        ("Compiling num tokens", "graph_progress"),
        ("DeepGEMM warmup", "jit_deepgemm"),
        ("AutoTuner", "jit_flashinfer"),
        ("quant weights", "weights_quant"),
    ),
    probe=regex(
        r'"GET /health(?:_generate)?(?:\?\S*)? HTTP/|Health check request received during shutdown'
        r"|Prefill batch(?: \[\d+\])?[.,] #new-seq: 1, #new-token: 1, #cached-token: \d+,"
    ),
    begins=("[", "I"),
    # fixed columns, so that no search is needed; only names and numbers, so that nothing can be a secret or an escape
    steady_record=regex(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)((?: (?:DP|PP|TP|EP)\d+)*)\] "),
    steady_body=(
        regex(
            r"((?:Decode|Prefill) batch, (?:#new-seq: \d+, #new-token: \d+, )?)"
            r"(?:#?[a-z][a-z0-9 #-]*(?: \(token/s\))?: (?:\d+(?:\.\d+)?|True|False)(?:, |$))+$"
        ),
        regex(
            r'INFO:     (?:\d{1,3}\.){3}\d{1,3}:\d{1,5} - ("(?:GET|POST) /[\w/.]{0,60} HTTP/1\.1" \d{3}[ \w]{0,24})$'
        ),
    ),
    fatal_header=regex(
        r"hit an exception|^Fatal Python error|warmup error:|^router init state: Traceback"
        r"|\bException in (?:Controller\w+|Model\w+|run_tp_server):"  # up to 0.2
    ),
    # logged, and the server goes on (0.5.17 lifespan@http_server.py, 0.5.18 freeze_gc)
    benign_header=regex(
        r"init traceback|freeze_gc failed|Ignore import error|Exception in ASGI application|^--- Logging error ---"
    ),
    # --log-requests, as text and as JSON (0.5.23 srt/utils/request_logger.py)
    requests=regex(r'(?:Receive|Receive OpenAI|Finish): obj=|\{"timestamp": "[^"]*", "event": "request\.'),
    serves=regex(r"^(?:Prefill|Decode) batch\b|\"(?:GET /health_generate|POST /\S+) HTTP/\S+ 200 OK$"),
    # up to 0.2 run_tp_server and start_*_process, and with rpyc exposed_init_model;
    # 0.5.23 srt/managers/scheduler.py, cli/main.py
    ends=regex(
        r'", line \d+, in (?:run_(?:scheduler|detokenizer|data_parallel_controller|tp_server)(?:_process)?'
        r"|exposed_init_model|start_(?:controller|router|detokenizer)_process)$"
        r"|/(?:sglang/launch_server\.py|bin/sglang)\", line \d+, in <module>$"
    ),
    # 0.5.23 srt/entrypoints/openai/serving_base.py: logged, and the request is answered with an error
    caught=regex(
        r'/sglang/srt/entrypoints/(?:openai/\w+\.py", line \d+, in \w|http_server\.py", line \d+, in generate)'
    ),
    died=regex(
        r"Rank (?P<n>\d+) scheduler (?:died|is dead)|Subprocess (?:scheduler_(?P<m>\d+)|\w+) \(pid=(?P<pid>\d+)\)"
    ),
    # logged when set_device fails (sglang 0.4.6 init_torch_distributed)
    hints=((regex(r"\bContext: self\.device=|Context: .*CUDA_VISIBLE_DEVICES"), "invalid_device"),),
    others=(
        OtherText(
            "a router's log",
            regex(
                r"sglang_router(?:_rs)?\b|\[Router \(Rust\)\]|\bsgl_model_gateway\b|\bsmg(?:::|_)|Starting router on"
            ),
            (
                (
                    regex(r"[Ww]aiting for (?:workers?|worker registration)"),
                    "it waits for workers to become healthy",
                ),
                (
                    regex(r"(?i)all workers (?:are )?healthy|workers? (?:is|are|became|become) healthy now"),
                    "its workers are healthy",
                ),
                (
                    regex(r"(?i)worker\S* .*(?:unhealthy|health check failed|failed to become healthy)"),
                    "a worker is not healthy",
                ),
                (
                    regex(r"(?i)timeout \S+ waiting for workers|timed? ?out waiting for workers"),
                    "it gave up waiting for workers",
                ),
            ),
        ),
        OtherText(
            "the log of a program that starts a server",
            regex(
                r"\bolmocr\b|(?i:please wait for \S+ server to become ready|waiting for (?:the )?\S* ?server to "
                r"(?:become ready|start|be ready)|server (?:process|task) (?:ended|exited|died))"
            ),
            (
                (
                    regex(r"(?i)please wait for|waiting for .*server"),
                    "it waits for the server, whose own log is elsewhere",
                ),
                (
                    regex(r"(?i)server (?:process|task) (?:ended|exited|died)"),
                    "the server that it started has ended",
                ),
                (regex(r"(?i)server is (?:ready|up)"), "the server that it started is ready"),
            ),
        ),
    ),
    # RankZeroFilter: installed in 0.4.6.post5 srt/model_executor/model_runner.py:158, last in 0.5.2 at :217
    filtered=((0, 4, 6, 5), (0, 5, 2, 9)),
)
