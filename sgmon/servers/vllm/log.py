"""How vLLM writes its log.

``(NAME pid=N) LEVEL MM-DD HH:MM:SS [file.py:123] message``: the first part of all processes from 0.10.2 on, of
workers and engines before ("VllmWorker TP0" in 0.10.1); no opening bracket up to 0.7.3. To 0.30 the first part stands
before every line that a process prints, from 0.31 on before those of the logger alone. vllm 0.5.5 ... 0.33.0
logger.py, logging_utils/formatter.py, utils (``_add_prefix``). Ray puts a prefix of the same form
around it: the inner one counts.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sgmon.model.server import ServerArgs
from sgmon.patterns import regex
from sgmon.servers.family import Heads, LogRules
from sgmon.servers.vllm.args_line import KEY, parse_args_line

_TOKENS = regex(r"[_ ](DP|PP|PCP|TP|DCP)(\d+)")
_LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_DATE = r"\d\d-\d\d \d\d:\d\d:\d\d"
_WHERE = r"\[?[\w./<>-]+:\d+\]"
_NAME = r"[A-Za-z_][\w:.-]*(?: rank=\d+|(?: [A-Z]{2,3}\d+)+)?"
_IP = r"(?:, ip=[\w.:]*)?"
_HEAD = rf"\({_NAME} pid=\d+{_IP}\) ?"
#: of SkyPilot: "(task, pid=8)"
_COMMA = r"(?:,(?: rank=\d+,)?)?"
#: the same of Ray, whose names may have parentheses ("MapWorker(MapBatches(LLM))"), and of SkyPilot
_OUTER = rf"\([A-Za-z_][\w:.-]*(?:\([\w:.()-]*\)| rank=\d+|(?: [A-Z]{{2,3}}\d+)+|{_COMMA}) pid=\d+{_IP}\) ?"
#: VLLM_LOGGING_PREFIX, and "[Stage-0]" of vllm-omni
_TAG = r"[^\s()]{1,40} "
_STAMP = rf"{_LEVEL} {_DATE} {_WHERE}"
#: files whose lines vLLM prints in other servers too, which import it
_LIBRARY = (
    r"(?!\[?(?:__init__|_custom_ops|importing|cuda|rocm|logger|interface|weight_utils|parallel_state|pynccl"
    r"|\w*all_reduce\w*)\.py:)"
)


@lru_cache(maxsize=1024)
def rank_of_name(name: str) -> str:
    """ "Worker_DP0_TP1_EP1" -> "DP0 TP1"; "VllmWorker rank=1" -> "TP1"; "EngineCore_DP1", "EngineCore_1" (before
    0.10.2) -> "DP1"; "" for other processes and an only rank."""
    old = re.search(r"VllmWorker rank=(\d+)", name)
    if old:
        return f"TP{old[1]}"
    engine = re.fullmatch(r"(?:DP)?EngineCore_(?:DP)?(\d+)", name)
    if engine:
        return f"DP{engine[1]}"
    return " ".join(token + number for token, number in _TOKENS.findall(name)) if is_worker(name) else ""


@lru_cache(maxsize=1024)
def is_worker(name: str) -> bool:
    """Whether a rank calls itself so: "Worker_TP0", "VllmWorker-0", "VllmWorkerProcess", "RayWorkerWrapper", and
    "WrapperWithLoadBit", the same below Ray in ipex-llm's vLLM."""
    return re.match(r"Worker|VllmWorker|RayWorker|WrapperWithLoadBit\b", name) is not None


def rank_of_number(number: int, world: int, named: str, args: ServerArgs | None) -> str:
    """The rank of a process that says "world_size=4 rank=2" and calls itself ``named`` so far.

    The pipeline stages are outside of the shards; a group of mixture-of-experts replicas counts through all of them.
    """
    if world == 1:
        return named if args is not None and args.dp > 1 else ("" if named in ("", "DP0") else named_alone(named))
    tp, pp = (args.tp, args.pp) if args is not None else (world, 1)
    if tp * pp > world:
        return f"TP{number}"
    shard, stage, replica = number % tp, number // tp % pp, number // (tp * pp)
    tokens = [f"DP{replica}"] * (world > tp * pp) + [f"PP{stage}"] * (pp > 1) + [f"TP{shard}"] * (tp > 1)
    return " ".join(tokens)


def named_alone(named: str) -> str:
    """The name of the only rank of a group: a replica keeps its own, a pid is no name."""
    return "" if named.startswith("pid") else named


RULES = LogRules(
    family="vllm",
    folder="sgmon.servers.vllm",
    record=regex(
        rf"(?=\(|{_LEVEL} \d)(?=(?:{_OUTER}|{_STAMP}))"
        rf"(?:(?:{_OUTER})*\((?P<ranks>{_NAME}){_COMMA} pid=(?P<pid>\d+){_IP}\) ?(?:{_TAG}(?={_STAMP}))?)?"
        rf"(?:(?P<level>{_LEVEL}) (?P<time>{_DATE}) {_WHERE} ?)?"
    ),
    # (?=[...]): what it can begin with; at any other character the search goes on at once
    inner=regex(rf"(?=[(DIWEC])(?<!\d\) )(?<!\d\))(?:(?:{_OUTER})+(?:{_TAG})?)?{_STAMP}"),
    inner_hints=("INFO ", "WARNING ", "ERROR ", "DEBUG ", "CRITICAL "),
    dated="",
    heads=Heads(
        time=regex(rf"(?:{_OUTER}){{0,3}}(?:{_TAG})?{_LEVEL} ({_DATE}) "),
        worker=is_worker,
        rank_of=rank_of_number,
        first="VllmWorkerProcess",
        repeats=regex(
            r"(?:^|\) )Process (?:EngineCore|DPEngineCore|ApiServer|APIServer|VllmWorker|SpawnProcess)\S*:"
        ),
        last_frame=regex(r'File "(?:\S*/bin/vllm|<frozen runpy>|\S*/vllm/entrypoints/\S+)", line \d+, in <module>'),
        # 0.5.5 ... 0.33.0: only exceptions of which a worker or an engine ends; others are benign_header
        raises=regex(
            rf"ERROR (?:{_DATE} )?\[?(?:[\w/]+/)?(?:(?:patch_)?core|engine|multiproc_executor|worker_base"
            r"|multiproc_worker_utils|ray_utils|stage_engine_core_proc)\.py:\d+\]"
        ),
        prints=regex(r"(?:.*\) )?\((?:EngineCore|Worker|VllmWorker)[\w -]*(?:=\d+)? pid=\d+\) ?"),
    ),
    rank=rank_of_name,
    speaks=regex(
        r"(?=[(DIWECLvuM/\"])(?:\((?:APIServer|ApiServer_\d+|(?:Stage)?EngineCore\w*|DPEngineCore\w*|Worker(?:_[A-Z]+\d+)*"
        r"|VllmWorker[\w -]*(?:=\d+)?|VllmWorkerProcess|RayWorkerWrapper|RayWorkerProc|RayWorkerVllm|DPSupervisor"
        r"|VLLM_DP_Coordinator) (?:rank=\d+ )?pid=\d+"
        rf"|(?:(?m:^)|(?<=[\s|│>\])\"])){_LEVEL} {_DATE} {_LIBRARY}{_WHERE} |vLLM API server version|LLM engine \(v"
        r"|\bvllm(?: serve)?: error:|\busage: (?:vllm|api_server\.py) |/bin/vllm\\?\""
        r"|/vllm/entrypoints/(?:openai/api_server|llm)\.py"
        r"|[/\"]vllm/(?:v1|executor|worker|engine|lora|compilation)/|\bvllm\.v1\.|\bvllm\.(?:platform|general)_plugins"
        r"|Engine core initialization failed|Capturing CUDA graphs? [(s]|\bMQLLMEngine\b)"
    ),
    args=parse_args_line,
    restart=KEY,
    version=regex(
        r"(?:vLLM (?:OpenAI )?(?:API )?server version|LLM engine \(|█ {1,2}version|Launching vLLM \()\s*v?"
        r"(\d+\.\d+[\w.+]*)"
    ),
    more=("LLM engine (v", "server version ", "█ version ", "█  version ", "Launching vLLM (v", "in creation task: "),
    fatal_header=regex(
        r"WorkerProc (?:failed to start|hit an exception)|(?<!Error: )Engine process failed to start"
        r"|Engine background task failed|Exception raised in creation task: The actor died"
        r"|EngineCore(?:Proc)? (?:failed to start|hit an exception|encountered a fatal error)|^Fatal Python error"
    ),
    # logged, and the server goes on: a request's exception, a look at a model's class that is made again without it
    benign_header=regex(
        r"Exception in ASGI application|Error in inspecting model architecture|Invocation of \w+ method failed"
    ),
    # of the process's own code, which catches nothing: not of a request's
    ends=regex(
        r", in (?:run_server(?:_worker)?|run_headless|run_multi_api_server|run_api_server_worker_proc|run_engine_core"
        r"|build_async_engine_client\w*|launch_core_engines|_init_executor|_init_workers_ray|_initialize_kv_caches"
        r"|create_engine_config|create_model_config|make_async_mp_client|make_client)\b"
    ),
    called_in="vllm/v1/worker/gpu_worker.py",
    calls=regex(r"\b(?:collective_rpc|_run_workers)\(\s*[\"'](\w+)[\"']"),
    requests=regex(r"Received request \S+: |Generated response \S+: "),
    serves=regex(r"Avg prompt throughput: |\" 200 OK$"),
    died=regex(r"(?:Worker proc VllmWorker-|RayWorkerProc rank=)(?P<n>\d+) died unexpectedly"),
    gates=(
        "INFO",
        "rror",
        "ing ",
        "ailed",
        "LLM",
        "took",
        "raph",
        "emory",
        "odel",
        " is ",
        "tart",
        "died",
        "not ",
        "cache",
    ),
    bars=(
        ("checkpoint shards", "weights_progress"),
        ("Multi-thread loading", "weights_progress"),
        ("Loading safetensors using", "weights_progress"),
        ("Capturing", "graph_progress"),
        ("DeepGEMM", "jit_deepgemm"),
        ("DeepGemm", "jit_deepgemm"),
        ("AutoTuner", "jit_flashinfer"),
        ("utotun", "jit_flashinfer"),
    ),
    probe=regex(
        r'"GET /(?:health|metrics|ping|version|load)(?:\?\S*)? HTTP/'
        r"|No available (?:shared memory broadcast )?block found in|Waiting for READY message from DP Coordinator"
        r"|Waiting for \d+ (?:local, \d+ remote )?core engine proc|Waiting for creating a placement group"
        r"|Waiting for output from MQLLMEngine"
    ),
    begins=("(", "I", "D", "W"),
    # scope="local" and "global" of the logger: 0.11.2 on
    filtered=((0, 11, 2), (9999,)),
)
