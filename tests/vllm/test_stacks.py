"""Stacks of vLLM: what the log said at the time is what the stack must say; the workers tell, not their engine."""

from __future__ import annotations

import pytest

from sgmon.analyse.stacks import causes
from sgmon.analyse.stacks.causes import book_of
from sgmon.analyse.stacks.conditions import Facts
from sgmon.analyse.stacks.merge import merge
from sgmon.analyse.stacks.phase import FILE, PhaseRow, phase_of, phase_of_all
from sgmon.analyse.stacks.waits import waits_in
from sgmon.model import Process, Role, WaitKind
from sgmon.tables import parse_rows, text_of
from tests.stacks.stack_files import made
from tests.vllm.stack_files import RULES, VERSION, recorded

BOOK = book_of(RULES)


@pytest.mark.parametrize(
    ("name", "role", "phase", "wait"),
    [
        ("api_imports", Role.LAUNCHER, "launch", None),
        ("api_waits", Role.LAUNCHER, "", "launcher_poll"),
        ("api_ready", Role.LAUNCHER, "ready", None),
        ("engine_waits_ready", Role.ENGINE, "", "engine_waits_for_workers"),
        ("engine_call", Role.ENGINE, "", "engine_waits_for_workers"),
        ("engine_loop", Role.ENGINE, "", "engine_loop"),
        ("worker_importing", Role.IMPORTING, "spawn", None),
        ("worker_dist_init", Role.WORKER, "dist_init", "init_process_group"),
        ("worker_weights", Role.WORKER, "weights", None),
        ("worker_others_load", Role.WORKER, "weights", "others_load"),
        ("worker_dynamo", Role.WORKER, "compile", None),
        ("worker_compiler", Role.WORKER, "compile", "compile"),
        ("worker_compile_lock", Role.WORKER, "compile", "filelock"),
        ("worker_loop", Role.WORKER, "", "worker_loop"),
        ("worker_idle", Role.WORKER, "", "worker_loop"),
    ],
)
def test_recorded(name: str, role: Role, phase: str, wait: str | None) -> None:
    dump = recorded(name, role=role)
    assert phase_of(dump, VERSION, RULES) == phase
    found = waits_in(dump, RULES)
    assert (found.name if found else None) == wait


# frames as they stand in 0.22.0 (GPU) and other versions
CAPTURE = "WorkerProc.worker_busy_loop@vllm/v1/executor/multiproc_executor.py < WorkerProc.worker_main@vllm/v1/executor/multiproc_executor.py"
COMPILE_OR_WARM_UP = f"Worker.compile_or_warm_up_model@vllm/v1/worker/gpu_worker.py < {CAPTURE}"


@pytest.mark.parametrize(
    ("path", "phase", "wait"),
    [
        (
            "broadcast_object_list@torch/distributed/distributed_c10d.py < CustomAllreduce.register_graph_buffers@vllm/distributed/"
            f"device_communicators/custom_all_reduce.py < GPUModelRunner.capture_model@x.py < {COMPILE_OR_WARM_UP}",
            "graphs",
            "broadcast",
        ),
        (f"_dummy_run@x.py < GPUModelRunner.capture_model@x.py < {COMPILE_OR_WARM_UP}", "graphs", None),
        (
            "capture_model@x.py < GPUModelRunner.profile_cudagraph_memory@x.py < Worker.determine_available_memory@gpu_worker.py",
            "profile",
            None,
        ),
        (
            f"_dummy_run@x.py < flashinfer_autotune@kernel_warmup.py < kernel_warmup@x.py < {COMPILE_OR_WARM_UP}",
            "engine_end",
            None,
        ),
        (
            f"GPUModelRunner.initialize_kv_cache@x.py < Worker.initialize_from_config@x.py < {CAPTURE}",
            "kv_cache",
            None,
        ),
        ("determine_num_available_blocks@vllm/worker/worker.py < _run_worker_process@x.py", "profile", None),
        (
            "load_model@vllm/model_executor/model_loader/base_loader.py < EagleProposer.load_model@vllm/v1/spec_decode/eagle.py",
            "draft_weights",
            None,
        ),
        ("Event.wait@threading.py < EngineCoreProc.__init__@vllm/v1/engine/core.py", "spawn", "coordinator_ready"),
        (
            "poll@x.py < EngineCoreProc.startup_handshake@vllm/v1/engine/core.py < EngineCoreProc.__init__@x.py < spawn_main",
            "spawn",
            "handshake",
        ),
        (
            f"MessageQueue.dequeue@shm_broadcast.py < GroupCoordinator.broadcast_object@parallel_state.py < {CAPTURE}",
            "",
            "message_from_rank",
        ),
    ],
)
def test_other_versions(path: str, phase: str, wait: str | None) -> None:
    path = path if "spawn_main" in path else f"{path} < spawn_main@multiprocessing/spawn.py"
    assert phase_of(made(path), VERSION, RULES) == phase
    found = waits_in(made(path), RULES)
    assert (found.name if found else None) == wait


def test_every_phase_is_one_of_the_start() -> None:
    for row in parse_rows(text_of(RULES.folder, FILE), "phase", PhaseRow, FILE):
        assert row.phase in ("", *RULES.order)


def test_a_rank_that_still_loads_is_the_outlier_of_those_that_have() -> None:
    """As on two H200s with TP1 stopped in the load: the other has loaded and waits in the queue."""
    found = merge([recorded("worker_others_load", "TP0"), recorded("worker_weights", "TP1")], RULES)
    assert [(c.ranks, c.outlier) for c in found] == [(("TP1",), True), (("TP0",), False)]
    assert "for the ranks that still load" in found[1].note


def test_an_idle_worker_waits_for_the_one_that_works() -> None:
    """Both are asked to compile; one has answered. The engine and the API server tell nothing of them."""
    dumps = [
        recorded("worker_loop", "TP0"),
        recorded("worker_dynamo", "TP1"),
        recorded("engine_call", "", role=Role.ENGINE),
        recorded("api_waits", "", role=Role.LAUNCHER),
    ]
    found = merge(dumps, RULES)
    assert [(c.ranks, c.outlier) for c in found] == [(("TP1",), True), (("TP0",), False)]
    assert phase_of_all(dumps, VERSION, RULES) == "compile"


def test_a_rank_that_is_not_in_the_exchange_of_graph_buffers() -> None:
    waits = f"broadcast_object_list@torch/distributed/distributed_c10d.py < CustomAllreduce.register_graph_buffers@x.py < capture_model@x.py < {CAPTURE}"
    works = f"_dummy_run@x.py < capture_model@x.py < {CAPTURE}"
    found = merge([made(waits, "TP0"), made(works, "TP1")], RULES)
    assert next(c.ranks for c in found if c.outlier) == ("TP1",)


def test_all_idle_or_all_at_work_is_no_outlier() -> None:
    for name in ("worker_idle", "worker_dynamo"):
        assert not any(c.outlier for c in merge([recorded(name, f"TP{n}") for n in range(2)], RULES))


def test_idle_ranks_prove_no_phase_the_api_server_does() -> None:
    idle = [recorded("worker_idle", f"TP{n}") for n in range(2)]
    assert phase_of_all(idle, VERSION, RULES) == ""
    assert phase_of_all([*idle, recorded("api_ready", "", role=Role.LAUNCHER)], VERSION, RULES) == "ready"
    wait = waits_in(idle[0], RULES)
    assert wait is not None and wait.kind is WaitKind.IDLE


def lines(text: str) -> Facts:
    return Facts(lines=(text,))


def stack(path: str, *others: str, **fields: object) -> Facts:
    dumps = tuple(made(one, f"TP{n}") for n, one in enumerate((path, *others)))
    processes = tuple(
        Process(dump.pid, 1, 1, Role.WORKER, rank=dump.rank, **{"state": "S", **fields})  # type: ignore[arg-type]
        for dump in dumps
    )
    return Facts(dumps=dumps, processes=processes)


#: id -> what must hit it: frames of the sources and of real starts, lines of real logs and of the cited reports
EXAMPLES: dict[str, list[Facts]] = {
    "invalid-gpu": [lines("RuntimeError: CUDA error: invalid device ordinal")],
    "orphans-hold-gpu": [
        lines(
            "ValueError: Free memory on device cuda:0 (2.1/139.8 GiB) on startup is less than desired GPU memory utilization (0.9, 125.8 GiB)."
        )
    ],
    "p2p-no-data": [
        stack("GroupCoordinator.all_reduce@x.py < PyNcclCommunicator.__init__@pynccl.py < init_device@x.py")
    ],
    "custom-all-reduce": [stack("broadcast@x.py < CustomAllreduce.register_graph_buffers@x.py < capture_model@x.py")],
    "message-queue-address": [
        stack(
            "MessageQueue.wait_until_ready@shm_broadcast.py < MessageQueue.create_from_process_group@shm_broadcast.py"
        )
    ],
    "dp-peer-missing": [
        stack("Event.wait@threading.py < EngineCoreProc.__init__@vllm/v1/engine/core.py"),
        lines(
            "(EngineCore_DP0 pid=7) INFO 11-29 21:11:52 [core.py:1247] Waiting for READY message from DP Coordinator..."
        ),
    ],
    "handshake-refused": [
        stack("poll@x.py < EngineCoreProc.startup_handshake@core.py"),
        lines("RuntimeError: Did not receive response from front-end process within 5 minutes"),
    ],
    "placement-group": [
        stack("get@ray.py < _wait_until_pg_ready@vllm/v1/executor/ray_utils.py"),
        lines(
            "INFO 11-29 21:11:52 [ray_utils.py:470] Waiting for creating a placement group of specs for 30 seconds."
        ),
    ],
    "checkpoint-incomplete": [
        lines(
            "FileNotFoundError: Weight files referenced in index but missing: {'models/bad/model-00003-of-00005.safetensors'}"
        )
    ],
    "slow-storage": [
        stack(
            "copy_@x.py < weight_loader@linear.py < load_weights@llama.py", state="D", wchan="folio_wait_bit_common"
        )
    ],
    "weight-post-processing": [
        stack("permute@x.py < process_weights_after_loading@marlin.py < load_model@base_loader.py")
    ],
    "slowest-rank-loads": [
        stack(
            "MessageQueue.wait_until_ready@shm_broadcast.py < WorkerProc.worker_main@multiproc_executor.py",
            "safetensors_weights_iterator@weight_utils.py < load_model@base_loader.py",
        )
    ],
    "torch-compile": [
        stack(
            "step@torch/_dynamo/symbolic_convert.py < _dummy_run@gpu_model_runner.py < profile_run@gpu_model_runner.py"
        ),
        Facts(dumps=(recorded("worker_dynamo"),)),
        Facts(dumps=(recorded("worker_compiler"),)),
    ],
    "workers-late": [
        lines(
            "(EngineCore pid=1) INFO 11-30 00:51:44 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work"
        )
    ],
    "cuda-out-of-memory": [lines("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.72 GiB.")],
    "no-room-for-kv": [
        lines(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing"
        ),
        lines("(16.0 GiB KV cache is needed, which is larger than the available KV cache memory (7.2 GiB)."),
    ],
    "deepgemm-compile": [stack("deepgemm_fp8_gemm_nt_warmup@deep_gemm_warmup.py < kernel_warmup@kernel_warmup.py")],
    "flashinfer-autotune": [
        stack("_dummy_run@x.py < flashinfer_autotune@kernel_warmup.py < kernel_warmup@kernel_warmup.py")
    ],
    "warmup-kernels": [stack("run@subprocess.py < _warmup_kernels@warmup.py < warmup_kernels@warmup.py")],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_cause_is_found(name: str) -> None:
    for facts in EXAMPLES[name]:
        assert name in [hit.id for hit in causes.match(facts, BOOK)]


def test_every_cause_of_vllm_has_an_example_and_a_source() -> None:
    own = causes.parse_book(text_of(RULES.folder, causes.FILE), causes.FILE)
    assert {cause.id for cause in own} - {"crossed-collectives"} == set(EXAMPLES)
    assert all(cause.row.source and cause.row.advice for cause in own)


def test_a_healthy_server_has_no_cause() -> None:
    names = ("worker_idle", "engine_loop", "api_ready")
    roles = (Role.WORKER, Role.ENGINE, Role.LAUNCHER)
    dumps = tuple(recorded(name, "", role) for name, role in zip(names, roles, strict=True))
    assert causes.match(Facts(dumps=dumps), BOOK) == ()
