"""The kinds of first cause that the log names, in words a stranger understands."""

from __future__ import annotations

_WORDS = {
    "port_in_use": "the port is already in use",
    "oom_cuda": "out of GPU memory",
    "not_enough_memory": "no GPU memory is left for the KV cache (--mem-fraction-static)",
    "host_memory": "out of host memory",
    "memory_unbalanced": "the GPUs have different free memory: another process holds some",
    "invalid_device": "a GPU that is not there was asked for",
    "graph_capture_failed": "graph capture failed",
    "load_barrier_timeout": "the other ranks did not finish loading in time",
    "load_barrier_peer_failed": "another rank failed in the weight load",
    "store_wait_timeout": "not every rank or node came to the rendezvous in time",
    "connect_timeout": "a connection to another rank timed out",
    "collective_timeout": "a collective timed out",
    "nccl_net_ib_completion_error": "NCCL cannot move data over InfiniBand",
    "nccl_remote_process_exited": "an NCCL peer has exited",
    "shm_too_small": "/dev/shm is too small",
    "nccl_memlock": "NCCL may not lock enough memory (ulimit -l)",
    "nccl_error": "NCCL failed",
    "gloo_connect_failed": "gloo could not connect to its peers",
    "tcpstore_lost": "the rendezvous store was lost: rank 0 is gone",
    "peer_lost": "the connection to another rank was lost",
    "segfault": "a segmentation fault",
    "bus_error": "a bus error (often /dev/shm too small)",
    "aborted": "a process aborted itself",
    "illegal_instruction": "an illegal instruction",
    "killed_sigkill": "a rank was killed by SIGKILL",
    "killed_sigterm": "a rank was ended by SIGTERM",
    "rank_died": "a rank died",
    "child_failed": "a child process failed",
    "warmup_failed": "the warm-up request failed",
    "model_not_found": "the model was not found",
    "model_access_denied": "access to the model was denied",
    "hub_unreachable": "the model is not here, and its hub cannot be reached",
    "weights_missing": "a weight file is missing",
    "weights_corrupt": "a weight file is damaged",
    "build_tool_missing": "a compiler or ninja is missing",
    "jit_build_failed": "a kernel could not be built",
    "no_kernel_image": "no kernel fits this GPU",
    "driver_too_old": "the GPU driver is too old",
    "cuda_error": "a CUDA error",
    "disk_full": "the disk is full",
    "too_many_files": "too many open files",
    "watchdog_timeout": "SGLang's watchdog struck: a batch did not end in time",
    "bad_arguments": "the arguments are wrong",
    "exception": "an exception",
}


def error_words(kind: str) -> str:
    """Words for a kind; a new kind shows its own name."""
    return _WORDS.get(kind, kind.replace("_", " "))
