"""What each family says of command lines, titles, topologies and settings, as text (``make goldens``).

The inputs are written out here, as users and servers write them; what is made of them is kept in __snapshots__.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from sgmon.model import Role, ServerArgs
from sgmon.model.preflight import Installed
from sgmon.servers import registry
from sgmon.servers.family import Launch, ServerFamily
from tests.golden import MEANT, Texts, row, word

FAMILIES = ("sglang", "vllm", "sglang-diffusion")
_FUNCTION = re.compile(r"<function .*? at 0x\w+>")

SGLANG = """
python -m sglang.launch_server --model-path /m --served-model-name s --host 10.0.0.1 --port 31000
python -m sglang.launch_server --model /m --tensor-parallel-size 4 --data-parallel-size 2 --pipeline-parallel-size 2 --expert-parallel-size 4
python -m sglang.launch_server --model /m --tp 4 --dp 2 --pp 2 --ep 4 --tp-s 8
python -m sglang.launch_server --model /m --tp-size 8 --attention-data-parallel-size 2
python -m sglang.launch_server --model /m --attn-dp-size 4 --attn-cp-size 2 --moe-dp-size 2
python -m sglang.launch_server --model /m --attention-context-parallel-size 2 --moe-data-parallel-size 3
python -m sglang.launch_server --model /m --nnodes 2 --node-rank 1 --dist-init-addr h:5000 --dist-timeout 60 --nccl-port 1
python -m sglang.launch_server --model /m --nccl-init-addr h:5001 --base-gpu-id 2 --gpu-id-step 3 --load-format dummy --device cpu
python -m sglang.launch_server --model /m --gated-launch-port 32000 --weight-cache-mode daemon --speculative-algo EAGLE
python -m sglang.launch_server --model /m --speculative-algorithm NEXTN --disaggregation-mode prefill --watchdog-timeout 300 --soft-watchdog-timeout 20
python -m sglang.launch_server --model /m --ssl-certfile c --ssl-keyfile-password p --api-key k --admin-api-key a --log-level info --log-level-http warning
python -m sglang.launch_server --model /m --ssl-keyfile k --cuda-graph-backend-decode disabled --revision r --tokenizer-worker-num 2
python -m sglang.launch_server --model /m --skip-server-warmup --disable-cuda-graph --enable-dp-attention --trust-remote-code --use-ray --encoder-only x
python -m sglang.launch_server --checkpoint-engine-wait-weights-before-ready /m2 --unknown-flag a b --enable-thing c --no-value
python -m sglang.launch_server --model /m --port 70000 --tp 0 --node-rank -1 --dist-timeout soon
python -m sglang.launch_server --model /m --port=-1 --tp=2 --tp 3 --port 65535
python3.11 -u -X dev -W ignore -m sglang.launch_server --model /m
python3 -m debugpy --listen 5678 -m sglang.launch_server --model /m
python3 -mpdb -m sglang.launch_server --model /m
python3 -Im sglang.launch_server --model /m
python3 --check-hash-based-pycs always -m sglang.launch_server --model /m
/opt/sglang/launch_server.py --model /m
python /opt/sglang/launch_server.py --model /m
python -m sglang.cli.main serve /m --tp 2
python -m sglang.cli serve --model-path /m
sglang serve /m --port 1
/usr/bin/python3 /usr/local/bin/sglang serve /m
/usr/bin/python3 /opt/sglang/cli/main.py serve /m
sglang bench /m
python -c 'import sglang.launch_server'
python
bash -c 'python -m sglang.launch_server --model /m'
sglang::http_server
sglang::server_1
sglang::scheduler_TP0
"""
VLLM = """
vllm serve /m --served-model-name s --host 10.0.0.1 --port 9000
vllm serve --model /m --tensor-parallel-size 4 --pipeline-parallel-size 2 --data-parallel-size 3
vllm serve /m -tp 4 -pp 2 -dp 3 -dpl 2 -dpn 1 -dpr 1 -dpa 10.0.0.2 -dpp 13345 -dpb ray -asc 2 -n 2 -r 1
vllm serve /m -pcp 2 -dcp 2 -sc {} -cc 3 -q fp8 -ep -dph
vllm serve /m -dpe -dpm
vllm serve /m --prefill-context-parallel-size 2 --decode-context-parallel-size 2 --data-parallel-size-local 2 --data-parallel-rank 1
vllm serve /m --data-parallel-start-rank 1 --data-parallel-address a --data-parallel-rpc-port 1 --data-parallel-backend mp --api-server-count 3
vllm serve /m --nnodes 2 --node-rank 1 --master-addr 10.0.0.9 --master-port 1234 --distributed-executor-backend ray
vllm serve /m --master-addr 10.0.0.9 --data-parallel-size 4 --data-parallel-multi-port-external-lb --data-parallel-supervisor-port 9300
vllm serve /m --data-parallel-size 2 --data-parallel-size-local 4000 --data-parallel-multi-port-external-lb
vllm serve /m --distributed-timeout-seconds 90 --device cpu --device-ids 0 --load-format dummy --speculative-config {} --speculative-model d
vllm serve /m --compilation-config 3 --quantization fp8 --tokenizer t --tokenizer-mode auto --revision r --dtype half --max-model-len 1 --max-num-seqs 2
vllm serve /m --gpu-memory-utilization 0.5 --kv-cache-memory-bytes 1 --kv-cache-dtype fp8 --ssl-certfile c --ssl-ca-certs ca --api-key k --hf-token t
vllm serve /m --ssl-keyfile k --uvicorn-log-level info --root-path /r --uds /tmp/s
vllm serve --headless /m --enforce-eager --enable-expert-parallel --data-parallel-hybrid-lb --data-parallel-external-lb
vllm serve --grpc /m --trust-remote-code --disable-uvicorn-access-log
vllm serve /m --no-enable-prefix-caching --async-scheduling --calculate-kv-scales --return-tokens-as-token-ids --unknown a b
vllm serve --O3 /m --port 65536
vllm serve /m --tensor 2 --gpu-mem 0.4 --max-model 5
vllm serve --model-tag /m
vllm launch render /m --port 1
vllm bench /m
python -m vllm.entrypoints.openai.api_server --model /m
python -m vllm.entrypoints.api_server --model /m
python -m vllm.entrypoints.cli.main serve /m
python -m vllm.entrypoints.cli serve /m
python -m vllm.scripts serve /m
python /opt/vllm/entrypoints/openai/api_server.py --model /m
python /opt/vllm/entrypoints/api_server.py --model /m
python /opt/vllm/entrypoints/cli/main.py serve /m
python /opt/vllm/scripts.py serve /m
python /usr/bin/vllm serve /m
"""
DIFFUSION = """
python -m sglang.multimodal_gen.runtime.launch_server --model-path /m --num-gpus 2 --tp-size 2 --host h --port 1 --served-model-name s
python -m sglang.multimodal_gen.runtime.launch_server --model /m --tensor-parallel-size 2 --nnodes 2 --node-rank 1 --dist-init-addr a:1
python -m sglang.multimodal_gen.runtime.launch_server --model /m --master-port 5 --scheduler-port 6 --api-key k --log-level info --webui /x --port 99999
python /o/sglang/multimodal_gen/runtime/launch_server.py --model /m
python -m sglang.multimodal_gen.runtime.entrypoints.cli.main serve /m --nnodes 0 --tp-size 0
python -m sglang.multimodal_gen.runtime.entrypoints.cli.main generate /m
"""
TITLES = """
sglang::scheduler sglang::scheduler_TP3 sglang::scheduler_DP1_PP0_TP2_EP2 sglang::scheduler_PP1_TP0_ATTN_CP0_MOE_DP1
sglang::scheduler:TP1 sglang::detokenizer sglang::data_parallel_controller sglang::tokenizer_worker:1 sglang::http_server sglang::server
sglang::schedul sglang::detoken sglang::data_pa sglang::tokeniz sglang::http_se sglang::other
sgl_diffusion::scheduler_TP1_U0 sgl_diffusion::scheduler_1 sgl_diffusion::scheduler_TP0_R2_C3 sgl_diffusion:: sgl_diffusion::
VLLM::Worker VLLM::Worker_TP0 VLLM::Worker_DP0_TP1_EP1 VLLM::Worker_PP1_TP0_PCP1_DCP1 VLLM::EngineCore VLLM::EngineCore_DP1
VLLM::DPEngineCore_1 VLLM::DPCoordinator VLLM::ApiServer_1 VLLM::APIServer VLLM::RayWorkerWrapper VLLM::RayWorkerProc_TP1
mine::Worker_TP1 VLLM::EngineC VLLM::DPEngineC VLLM::DPCoord VLLM::APIServ VLLM::RayWork VLLM::Workers python a::b
"""
LAUNCHES = {"sglang": SGLANG, "vllm": VLLM, "sglang-diffusion": DIFFUSION}
#: what an option may be, in a line with all arguments
SETTINGS: dict[str, tuple[str, ...]] = {
    "tokenizer_path": ("/t", "None"),
    "tokenizer": ("/t",),
    "skip_tokenizer_init": ("True", "false", "yes"),
    "trust_remote_code": ("True", "1"),
    "quantization": ("fp8", "null"),
    "mem_fraction_static": ("0.5", "1", "1.01", "0", "x"),
    "gpu_memory_utilization": ("0.5", "1", "1.01", "0", "x", "0.5.5"),
    "kv_cache_memory_bytes": ("1", "None"),
    "speculative_draft_model_path": ("/d",),
    "speculative_model": ("/d", "[ngram]", "None"),
    "speculative_config": ("{'model': '/d'}", '{"model": "/d"}', '{"method": "ngram", "model": "x"}', "{'model': ", "[1]"),
    "speculative_config.model": ("/d",),
    "chat_template": ("chatml",),
    "ep_join_mode": ("scale", "other"),
    "cpu_offload_gb": ("4", "0"),
    "offload_group_size": ("2", "-1", "0"),
    "torchao_config": ("int4",),
    "weight_cache_mode": ("daemon", "off"),
    "enable_expert_parallel": ("True",),
    "enable_http_worker_reuseport": ("True", "1", "0"),
    "attn_cp_size": ("1", "2", "None"),
    "distributed_executor_backend": ("ray", "mp"),
    "tokenizer_worker_num": ("1", "2", "x"),
    "api_server_count": ("2",),
    "chunked_prefill_size": ("4096", "-1", "0"),
    "cuda_graph_max_bs": ("16",),
    "cuda_graph_max_bs_decode": ("24",),
    "cuda_graph_backend_prefill": ("disabled",),
    "enable_dp_attention": ("True", "False"),
    "moe_a2a_backend": ("deepep", "none"),
    "disaggregation_mode": ("prefill", "null"),
    "cuda_graph_config": ("x",),
}  # fmt: skip
VERSIONS = {
    "sglang": ("", "0.4.5", "0.4.6", "0.4.8", "0.4.9", "0.4.10.post2", "0.5.4", "0.5.5", "0.5.21", "0.5.22"),
    "vllm": ("", "0.7.3", "0.8.0", "0.10.0", "0.10.1", "0.14.1", "0.15.0"),
    "sglang-diffusion": ("",),
}
#: sizes of GPUs in MiB on both sides of each of SGLang's limits
GPUS_MIB = (0, 4096, 20479, 20480, 35839, 35840, 61439, 61440, 61441, 92159, 92160, 163839, 163840, 200000)


def compare(lines: Iterator[str], snapshot: SnapshotAssertion) -> None:
    assert "\n".join([*lines, ""]) == snapshot(extension_class=Texts), MEANT


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> ServerFamily:
    return registry.get(request.param)


def test_a_command_line_is_as_it_was(family: ServerFamily, snapshot: SnapshotAssertion) -> None:
    compare(_launches(family), snapshot)


def _launches(family: ServerFamily) -> Iterator[str]:
    import shlex

    for line in LAUNCHES[family.name].strip().splitlines():
        found = registry.recognise(tuple(shlex.split(line)))
        yield f"$ {line}"
        if found is None:
            yield "  no server"
            continue
        its, launch = found
        yield f"  {its.name}, {launch.form}, {len(launch.tail) if launch.tail is not None else 'no'} arguments"
        if launch.tail is not None:
            args = its.discovery.parse_args(launch, lambda path: {})
            yield f"  {row(args, 'raw')}"
            yield "  " + " ".join(f"{name}={value}" for name, value in args.raw)


def test_each_flag_alone_is_as_it_was(family: ServerFamily, snapshot: SnapshotAssertion) -> None:
    """Which of the words behind a flag are its value: a switch takes none, and the last word is the model."""
    compare(_flags(family), snapshot)


def _flags(family: ServerFamily) -> Iterator[str]:
    words = {word.partition("=")[0] for word in LAUNCHES[family.name].split() if word.startswith("-")}
    for flag in sorted(words - {"-m", "-c", "-X", "-W", "-u", "--check-hash-based-pycs"}):
        args = family.discovery.parse_args(Launch("serve", (flag, "7", "/m")), lambda path: {})
        yield f"{flag}: {' '.join(f'{name}={value}' for name, value in args.raw)}"


def test_a_title_is_as_it_was(snapshot: SnapshotAssertion) -> None:
    compare(_titles(), snapshot)


def _titles() -> Iterator[str]:
    for title in TITLES.split():
        named = registry.family_of_title((title,))
        told = [f"{title}: {named.name if named is not None else 'none'}"]
        for name in FAMILIES:
            discovery = registry.get(name).discovery
            roles = (discovery.role_of((title,)), discovery.role_of_comm(title[:15]))
            told.append(f"{name} {roles[0].value} {roles[1].value} {discovery.rank_of(title) or '-'}")
        yield "; ".join(told)


def test_a_topology_is_as_it_was(family: ServerFamily, snapshot: SnapshotAssertion) -> None:
    compare(_topologies(family), snapshot)


def _topologies(family: ServerFamily) -> Iterator[str]:
    """What each role spawns and which GPU each rank has, over sizes, nodes, settings and versions."""
    raws: dict[str, tuple[tuple[tuple[str, str], ...], ...]] = {
        "sglang": ((), (("weight_cache_mode", "daemon"),)),
        "vllm": (
            (),
            (("data_parallel_size_local", "1"),),
            (("data_parallel_rank", "1"),),
            (("data_parallel_start_rank", "1"), ("data_parallel_size_local", "1")),
            (("data_parallel_hybrid_lb", "True"),),
            (("data_parallel_external_lb", "True"),),
            (("data_parallel_multi_port_external_lb", "True"),),
            (("data_parallel_backend", "ray"),),
            (("distributed_executor_backend", "ray"),),
        ),
        "sglang-diffusion": ((), (("num_gpus", "4"),), (("num_gpus", "x"),)),
    }
    for sizes in ((1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 2, 1), (4, 1, 1, 2), (1, 2, 1, 1), (4, 2, 1, 1), (2, 2, 2, 4)):
        tp, dp, pp, ep = sizes
        for nnodes, attention, raw in product((1, 2), (False, True), raws[family.name]):
            if attention and (dp == 1 or family.name != "sglang"):
                continue
            for node in range(nnodes):
                args = ServerArgs(
                    tp=tp, dp=dp, pp=pp, ep=ep, nnodes=nnodes, node_rank=node, dp_attention=attention, raw=raw,
                    base_gpu_id=1, gpu_id_step=2, headless=family.name == "vllm" and node > 0,
                )  # fmt: skip
                yield f"= {row(args, 'base_gpu_id', 'gpu_id_step')}"
                yield from _spawned(family, args)


def _spawned(family: ServerFamily, args: ServerArgs) -> Iterator[str]:
    before = ""
    for version in VERSIONS[family.name]:
        told = []
        for role in (Role.LAUNCHER, Role.API_SERVER, Role.CONTROLLER, Role.ENGINE, Role.WORKER, Role.OTHER):
            slots = family.discovery.expected_children(role, args, version)
            if slots:
                told.append(f"{role.value}: " + ", ".join(f"{slot.role.value} {slot.rank}".strip() for slot in slots))
        gpus = word(family.start.gpus(args, version))
        now = f"{' | '.join(told) or 'nothing'} | GPUs {gpus} | shares the port {family.start.shares_port(args)}"
        if now != before:
            yield f"  {version or 'any'}: {now}"
        before = now


def test_a_setting_is_as_it_was(family: ServerFamily, snapshot: SnapshotAssertion) -> None:
    compare(_settings(family), snapshot)


def _settings(family: ServerFamily) -> Iterator[str]:
    """What the start is taken to need with one argument set, on one rank and on two."""
    for name, values in SETTINGS.items():
        for value, tp in product(values, (1, 2)):
            args = ServerArgs(tp=tp, raw=((name, value),))
            yield f"{name}={value} tp {tp}: {_need(family, args)}"
    for args in (
        ServerArgs(tp=2, device="cpu"), ServerArgs(tp=2, device="cuda"), ServerArgs(tp=2, device="auto"),
        ServerArgs(tp=2, nnodes=2), ServerArgs(tp=2, ep=2), ServerArgs(tp=1, pp=2), ServerArgs(tp=2, disable_cuda_graph=True),
        ServerArgs(tp=2, dp=2), ServerArgs(tp=2, skip_server_warmup=True),
    ):  # fmt: skip
        yield f"{row(args)}: {_need(family, args)}"
    for variable, value in (("SGLANG_USE_MESSAGE_QUEUE_BROADCASTER", "0"), ("VLLM_MQ_MAX_CHUNK_BYTES_MB", "4"), ("VLLM_MQ_MAX_CHUNK_BYTES_MB", "x")):  # fmt: skip
        needs = family.start.shared_memory(
            ServerArgs(tp=2), lambda name, of=variable, its=value: its if name == of else ""
        )
        yield f"{variable}={value}: {word(needs)}"
    for version in VERSIONS[family.name]:
        health = family.health
        titled, cpu = family.discovery.titled(version), family.start.cpu_build(f"{version}+cpu")
        why = health.why_503(version, ServerArgs(skip_server_warmup=True))
        yield f"{version or 'any'}: titled {titled}, CPU build {cpu}, 200 means ready {health.ok_means_ready(version)}, {why or 'no 503'}"
        hits = [
            word(defect) for defect in family.start.defects if defect.applies(ServerArgs(skip_server_warmup=True))
        ]
        yield from (f"  defect {_FUNCTION.sub('f', hit)}" for hit in hits if not version)


def _need(family: ServerFamily, args: ServerArgs) -> str:
    start = family.start
    restarts = [
        f"{role.value}/{becomes.value}"
        for role, becomes in product((Role.TOKENIZER, Role.IMPORTING, Role.WORKER), (Role.OTHER, Role.TOKENIZER, Role.WORKER))
        if family.ends.restarts(role, becomes, args)
    ]  # fmt: skip
    flags = [name for name, on in (("pads heads", start.pads_heads(args)), ("meets", start.meets(args)), ("shares port", start.shares_port(args))) if on]  # fmt: skip
    memory = start.memory.context_bytes(args), start.memory.besides_bytes(args)
    shm = start.shared_memory(args, lambda name: "")
    return f"{row(start.options(args)) or 'plain'}; {', '.join(flags)}; shm {word(shm)}; takes {memory}; again {restarts}"


def test_a_share_of_memory_is_as_it_was(family: ServerFamily, snapshot: SnapshotAssertion) -> None:
    compare(_shares(family), snapshot)


def _shares(family: ServerFamily) -> Iterator[str]:
    nothing = Installed()
    versions = {"sglang": ("", "0.5.16", "0.5.17", "0.5.23", "0.5.24"), "vllm": ("",), "sglang-diffusion": ("",)}

    def told(
        args: ServerArgs, mib: float, version: str, installed: Installed = nothing, env: dict[str, str] | None = None
    ) -> str:
        share = family.start.memory.share(args, int(mib * 1024**2), version, installed, env or {})
        return "not known" if share is None else row(share)

    newest = versions[family.name][-2] if family.name == "sglang" else ""
    for mib, tp in product(GPUS_MIB, (1, 3, 4)):
        yield f"{mib} MiB tp {tp}: {told(ServerArgs(tp=tp), mib, newest)}"
    yield from (f"{version or 'any'}: {told(ServerArgs(), 80 * 1024, version)}" for version in versions[family.name])
    for name, values in SETTINGS.items():
        yield from (
            f"{name}={value}: {told(ServerArgs(raw=((name, value),)), 24 * 1024, newest)}" for value in values
        )
    for args in (
        ServerArgs(device="cpu"),
        ServerArgs(device="cuda"),
        ServerArgs(pp=2),
        ServerArgs(disable_cuda_graph=True),
    ):
        yield f"{row(args)}: {told(args, 24 * 1024, newest)}"
    yield f"post capture: {told(ServerArgs(), 24 * 1024, newest, env={'SGLANG_ENABLE_POST_CAPTURE_KV_SIZING': '1'})}"
    for proofs in (("share-0.92",), ("share-0.9",), ("shares",)):
        yield f"proven {proofs[0]}: {told(ServerArgs(), 24 * 1024, newest, msgspec.structs.replace(nothing, proofs=proofs))}"


def test_a_phase_is_as_it_was(family: ServerFamily, snapshot: SnapshotAssertion) -> None:
    """Words, columns and quiet times, which stand on the screen and decide when a start is suspect."""
    compare(_phases(family), snapshot)


def _phases(family: ServerFamily) -> Iterator[str]:
    table = family.phases
    for phase in table.phases:
        yield row(phase)
        yield f"  place {table.order(phase.name)}, after it {table.after(phase.name)}, repeated {table.repeated(phase.name)}"
    yield f"by a leader alone: {', '.join(sorted(table.leader_only))}"
    yield f"stacks: {', '.join(family.stacks.order)}"


def test_the_record_is_as_it_was(family: ServerFamily, snapshot: SnapshotAssertion) -> None:
    """Settings that are words and numbers: names, folders, variables, proofs, stages."""
    compare(_record("", family), snapshot)


def _record(place: str, record: msgspec.Struct) -> Iterator[str]:
    for field in record.__struct_fields__:
        value, name = getattr(record, field), f"{place}{field}"
        if name in ("phases", "log", "start.defects") or callable(value) or isinstance(value, re.Pattern):
            continue
        if isinstance(value, msgspec.Struct):
            yield from _record(f"{name}.", value)
        elif isinstance(value, (frozenset, dict)):
            told = value.items() if isinstance(value, dict) else value
            yield f"{name}: {', '.join(sorted(str(one) for one in told))}"
        elif value not in ("", (), None) and "<function" not in str(value):
            yield f"{name}: {word(value)}"
