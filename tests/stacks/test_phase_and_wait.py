"""Phase and wait of recorded stacks: what the log said at the time is what the stack must say."""

from __future__ import annotations

import pytest

from sgmon.analyse.stacks.pattern import stack_pattern
from sgmon.analyse.stacks.phase import FILE, PhaseRow, phase_of, phase_of_all
from sgmon.analyse.stacks.waits import waits_in
from sgmon.model import Role
from sgmon.servers import registry
from sgmon.tables import TableError, parse_rows, text_of
from tests.stacks.stack_files import RULES, frames, made, recorded

GPU, CPU = "0.5.17", "0.5.23"


@pytest.mark.parametrize(
    ("name", "role", "version", "phase", "wait"),
    [
        ("launch_args.json", Role.LAUNCHER, CPU, "launch", None),
        ("importing.json", Role.IMPORTING, GPU, "spawn", None),
        ("launcher_waits.json", Role.LAUNCHER, GPU, "", "launcher_poll"),
        ("rendezvous.json", Role.WORKER, GPU, "dist_init", "rendezvous"),
        ("rendezvous_native.json", Role.WORKER, GPU, "dist_init", "rendezvous"),
        ("weights_loader.json", Role.WORKER, GPU, "weights", None),
        ("weights_embedding.json", Role.WORKER, GPU, "weights", None),
        ("load_tp0_barrier.json", Role.WORKER, GPU, "weights", "barrier_after_load"),
        ("kv_profile.json", Role.WORKER, CPU, "kv_cache", None),
        ("jit_tp1_filelock.json", Role.WORKER, GPU, "graphs", "filelock"),
        ("jit_tp0_tvm_lock.json", Role.WORKER, GPU, "graphs", "filelock"),
        ("jit_tp0_ninja.json", Role.WORKER, GPU, "graphs", "compile"),
        ("capture_tp0_synchronize_a.json", Role.WORKER, GPU, "graphs", "cuda_synchronize"),
        ("capture_tp0_native.json", Role.WORKER, GPU, "graphs", "cuda_synchronize"),
        ("capture_tp1_barrier_a.json", Role.WORKER, GPU, "graphs", "barrier"),
        ("capture_tp1_pynccl.json", Role.WORKER, GPU, "graphs", "all_reduce"),
        ("triton_build.json", Role.WORKER, GPU, "graphs", "compile"),
        ("event_loop_broadcast.json", Role.WORKER, CPU, "scheduler_ready", "event_loop"),
        ("warmup_tp1_forward.json", Role.WORKER, CPU, "warmup", None),
        ("warmup_tp0_all_reduce.json", Role.WORKER, CPU, "warmup", "all_reduce"),
        ("inductor.json", Role.WORKER, CPU, "warmup", "compile"),
        ("launcher_bind_failed.json", Role.LAUNCHER, GPU, "warmup", "warmup_request"),
        ("detokenizer.json", Role.DETOKENIZER, GPU, "", "event_loop"),
    ],
)
def test_recorded(name: str, role: str, version: str, phase: str, wait: str | None) -> None:
    dump = recorded(name, role=role)
    assert phase_of(dump, version, RULES) == phase
    found = waits_in(dump, RULES)
    assert (found.name if found else None) == wait


def test_launcher_after_its_warmup_thread_has_ended() -> None:
    assert phase_of(recorded("launcher_serves.json", role=Role.LAUNCHER), CPU, RULES) in ("ready", "warmup")


@pytest.mark.parametrize(
    ("path", "version", "phase"),
    [
        ("get_tokenizer@x.py < Scheduler.init_tokenizer@scheduler.py < Scheduler.__init__", "0.5.9", "spawn"),
        ("get_tokenizer@x.py < Scheduler.init_tokenizer@scheduler.py < Scheduler.__init__", "0.5.23", "dist_init"),
        ("poll@x < _wait_until_activated@gate.py < run_scheduler_process@scheduler.py", "0.5.23", "dist_init"),
        ("profile_max_num_token@model_runner.py < ModelRunner.init_memory_pool", "0.5.9", "kv_cache"),
        ("copy_@x < process_weights_after_loading@fp8.py < load_model@model_loader/loader.py", "", "weights"),
        ("choose_one@autotuner.py < _dummy_run < ModelRunner._flashinfer_autotune", "0.5.12", "graphs"),
        (
            "capture_one_batch_size@cuda_graph_runner.py < CudaGraphRunner.capture < CudaGraphRunner.__init__",
            "0.5.9",
            "graphs",
        ),
        (
            "load_model@model_runner.py < ModelRunner.__init__ < TpModelWorker.__init__ < EAGLEWorker.__init__@eagle_worker.py",
            "0.5.9",
            "draft_weights",
        ),
        (
            "capture@x < CudaGraphRunner.__init__ < EagleDraftWorker._capture_cuda_graphs < run_scheduler_process",
            "0.5.17",
            "draft_graphs",
        ),
        ("put@http.py < PrefillBootstrapQueue.__init__ < Scheduler.init_disaggregation", "0.5.9", "disagg"),
        ("f@x.py < g@y.py", "0.5.9", ""),
    ],
)
def test_other_versions(path: str, version: str, phase: str) -> None:
    assert phase_of(made(path), version, RULES) == phase


def test_phase_of_the_whole_server() -> None:
    ranks = [recorded("weights_loader.json", "TP0"), recorded("jit_tp0_ninja.json", "TP1")]
    launcher = recorded("launcher_waits.json", "", role=Role.LAUNCHER, pid=7)
    assert phase_of_all([*ranks, launcher], GPU, RULES) == "weights"
    idle = [recorded("event_loop_broadcast.json", f"TP{n}") for n in range(2)]
    assert phase_of_all([*idle, launcher], CPU, RULES) == "scheduler_ready"
    assert (
        phase_of_all([*idle, recorded("launcher_bind_failed.json", "", role=Role.LAUNCHER, pid=7)], CPU, RULES)
        == "warmup"
    )
    assert phase_of_all([], CPU, RULES) == ""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("FileBaton.wait@torch/utils/file_baton.py < _jit_compile@torch/utils/cpp_extension.py", "torch_file_baton"),
        ("acquire@filelock/_api.py < download_weights_from_hf@weight_utils.py", "filelock"),
        ("http_get@huggingface_hub/file_download.py < snapshot_download < download_weights_from_hf", "hub_download"),
        ("sleep@x < _wait_until_activated@gate.py", "gate"),
        (
            "MessageQueue.wait_until_ready@sglang/srt/distributed/device_communicators/shm_broadcast.py",
            "message_queue",
        ),
        ("_gather_ipc_meta@custom_all_reduce.py < CustomAllreduce.__init__", "custom_all_reduce"),
        ("PyNcclCommunicator.__init__@pynccl.py < GroupCoordinator.__init__", "nccl_init"),
        ("_new_process_group_helper@torch/distributed/distributed_c10d.py < new_group", "init_process_group"),
        ("getaddrinfo@socket.py < create_connection", "dns"),
        ("c10d::Work::wait@libtorch.so", "collective"),
    ],
)
def test_waits_that_were_not_recorded(path: str, name: str) -> None:
    found = waits_in(made(path), RULES)
    assert found is not None
    assert found.name == name


def test_waits_for_ranks() -> None:
    assert waits_in(recorded("load_tp0_barrier.json"), RULES).for_ranks  # type: ignore[union-attr]
    assert not waits_in(recorded("launcher_waits.json"), RULES).for_ranks  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pattern", "stack", "index"),
    [
        ("barrier", "wrapper < GroupCoordinator.barrier@a.py", 1),
        ("a < c", "a < b < c", 0),
        ("c < a", "a < b < c", None),
        ("a < a", "a < b", None),
        ("x | b", "a < b", 1),
        ("event_loop_*", "Scheduler.event_loop_overlap@s.py", 0),
        ("load_model@model_loader/loader.py", "load_model@sglang/srt/model_loader/loader.py", 0),
        ("load_model@model_loader/loader.py", "load_model@loader.py", 0),
        ("load_model@model_loader/loader.py", "load_model@other.py", None),
        ("*@subprocess.py < *ninja*", "_wait@subprocess.py < run@subprocess.py < run_ninja@cpp_ext.py", 0),
        ("synchronize@torch/cuda/", "synchronize@torch/cuda/__init__.py", 0),
    ],
)
def test_patterns(pattern: str, stack: str, index: int | None) -> None:
    assert stack_pattern(pattern).find(frames(stack)) == index


def test_an_empty_pattern_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty frame"):
        stack_pattern("a <  < b")


def test_every_phase_of_the_table_has_its_place() -> None:
    rows = parse_rows(text_of(RULES.folder, FILE), "phase", PhaseRow, FILE)
    main = {row.phase for row in rows} - {""}
    draft = {f"draft_{row.phase}" for row in rows if row.draft and row.phase not in ("spawn", "launch")}
    assert main | draft <= set(RULES.order)
    assert set(RULES.order) == {phase.name for phase in registry.get("sglang").phases.phases}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('frames = ["a"]', "phase 1: Object missing required field `phase`"),
        ('phase = "x"\nframes = "a"', "phase 1: Expected `array`, got `str` - at `$.frames`"),
        ('phase = "x"\nframes = []\nsine = "1"', "phase 1: Object contains unknown field `sine`"),
    ],
)
def test_a_mistake_in_a_table_names_its_row(row: str, words: str) -> None:
    with pytest.raises(TableError) as caught:
        parse_rows(f"[[phase]]\n{row}", "phase", PhaseRow, "x.toml")
    assert str(caught.value) == f"x.toml: {words}"
