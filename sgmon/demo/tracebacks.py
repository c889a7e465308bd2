"""Tracebacks of failed starts, as recorded from 0.5.23 (CPU) and 0.5.17 (H200), without the marker lines."""

from __future__ import annotations

from sgmon.demo.play import Play

_HEAD = "Traceback (most recent call last):\n"

#: file below sglang/, line, function, statement
_Frame = tuple[str, int, str, str]

_TO_MODEL_RUNNER: tuple[_Frame, ...] = (
    ("srt/managers/scheduler.py", 6362, "run_scheduler_process", "scheduler = Scheduler(server_args, port_args)"),
    ("srt/managers/scheduler.py", 568, "__init__", "self.init_model_worker()"),
)
_LOAD: tuple[_Frame, ...] = (
    *_TO_MODEL_RUNNER,
    ("srt/managers/scheduler.py", 1130, "init_model_worker", "self.init_tp_model_worker()"),
    ("srt/managers/scheduler.py", 1033, "init_tp_model_worker", "self.tp_worker = TpModelWorker(**worker_kwargs)"),
    ("srt/managers/tp_worker.py", 319, "__init__", "self._init_model_runner()"),
    ("srt/managers/tp_worker.py", 487, "_init_model_runner", "self._model_runner = ModelRunner("),
    ("srt/model_executor/model_runner.py", 499, "__init__", "self.initialize()"),
    ("srt/model_executor/model_runner.py", 715, "initialize", "self.load_model()"),
    ("srt/model_executor/model_runner.py", 1312, "load_model", "loaded = load_model_with_memory_saver("),
    (
        "srt/model_executor/model_runner_components/load_model_utils.py",
        346,
        "load_model_with_memory_saver",
        "model = loader.load_model(",
    ),
    ("srt/model_loader/loader.py", 1020, "load_model", "self.load_weights_and_postprocess("),
    (
        "srt/model_loader/loader.py",
        1029,
        "load_weights_and_postprocess",
        "DefaultModelLoader.load_weights_only(model, weights, target_device)",
    ),
    ("srt/model_loader/loader.py", 1063, "load_weights_only", "model.load_weights(weights)"),
    ("srt/model_loader/weight_utils.py", 1378, "buffered_multi_thread_safetensors_weights_iterator",
     "state_dict = future.result()"),
    ("srt/model_loader/weight_utils.py", 1354, "_load_file",
     'with safetensors.safe_open(st_file, framework="pt", device="cpu") as f:'),
)  # fmt: skip
_KV_CACHE: tuple[_Frame, ...] = (
    *_TO_MODEL_RUNNER,
    ("srt/managers/scheduler.py", 1137, "init_model_worker", "self.init_memory_pools()"),
    ("srt/managers/scheduler.py", 1100, "init_memory_pools", "self.init_target_memory_pool()"),
    ("srt/managers/scheduler.py", 1090, "init_target_memory_pool", "self.tp_worker.alloc_memory_pool()"),
    (
        "srt/managers/tp_worker.py",
        409,
        "alloc_memory_pool",
        "self.model_runner.alloc_memory_pool(memory_pool_config)",
    ),
    (
        "srt/model_executor/model_runner.py",
        982,
        "alloc_memory_pool",
        "result = self.kv_cache_configurator.configure(",
    ),
    ("srt/mem_cache/kv_cache_configurator.py", 480, "configure", "pools = self._init_pools("),
    ("srt/mem_cache/memory_pool.py", 1840, "__init__", "self._create_buffers()"),
    ("srt/mem_cache/memory_pool.py", 1931, "_create_buffers", "self._create_buffers_normal()"),
    (
        "srt/mem_cache/memory_pool.py",
        2092,
        "_create_buffers_normal",
        "torch.zeros(v_shape, dtype=self.store_dtype, device=self.device)",
    ),
)
_LAUNCH: tuple[_Frame, ...] = (
    ("launch_server.py", 84, "<module>", "run_server(server_args)"),
    ("launch_server.py", 67, "run_server", "launch_server(server_args)"),
    ("srt/entrypoints/http_server.py", 3156, "launch_server", ") = Engine._launch_subprocesses("),
    ("srt/entrypoints/engine.py", 1350, "_launch_subprocesses", "scheduler_init_result.wait_for_ready()"),
    (
        "srt/entrypoints/engine.py",
        995,
        "wait_for_ready",
        "infos = _wait_for_scheduler_ready(scheduler_pipe_readers, scheduler_procs)",
    ),
    (
        "srt/entrypoints/engine.py",
        2040,
        "_wait_for_scheduler_ready",
        "raise _scheduler_died_error(j, scheduler_procs[j])",
    ),
)


def _frames(play: Play, frames: tuple[_Frame, ...]) -> str:
    return "".join(
        f'  File "{play.site}/sglang/{path}", line {line}, in {function}\n    {statement}\n'
        for path, line, function, statement in frames
    )


def damaged_shard(play: Play) -> str:
    return (
        _HEAD
        + _frames(play, _LOAD)
        + "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, "
        "file not fully covered\n"
    )


def out_of_memory(play: Play, gpu: int) -> str:
    return (
        _HEAD
        + _frames(play, _KV_CACHE)
        + f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.72 GiB. GPU {gpu} has a total "
        "capacity of 139.80 GiB of which 1.19 GiB is free. Including non-PyTorch memory, this process has "
        "138.60 GiB memory in use. Of the allocated memory 137.93 GiB is allocated by PyTorch, and 5.05 MiB is "
        "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
        "Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
        "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)\n"
    )


def scheduler_died(play: Play, rank: int, exit_code: int | None) -> str:
    """Uncaught in the main process, hence without a prefix."""
    runpy = (
        '  File "<frozen runpy>", line 198, in _run_module_as_main\n  File "<frozen runpy>", line 88, in _run_code\n'
    )
    return (
        _HEAD
        + runpy
        + _frames(play, _LAUNCH)
        + f"RuntimeError: Rank {rank} scheduler died during initialization (exit code: {exit_code}). "
        "If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. "
        "Run `dmesg -T | grep -i oom` to check.\n"
    )


def warmup_failed(play: Play) -> str:
    frame = (
        "srt/entrypoints/http_server.py",
        2376,
        "_execute_server_warmup",
        'assert res.status_code == 200, f"{res=}, {res.text=}"',
    )
    return _HEAD + _frames(play, (frame,)) + "AssertionError: res=<Response [404]>, res.text='Not Found'\n"
