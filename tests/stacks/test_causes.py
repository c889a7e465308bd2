"""Every entry of the cause book against what was really seen: recorded stacks, lines of real logs, NCCL's answers.

Where nothing could be recorded (other hardware), the pattern is the one that the cited report shows.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.stacks import causes
from sgmon.analyse.stacks.causes import Cause, book_of, parse_book, with_entries
from sgmon.analyse.stacks.conditions import Facts
from sgmon.analyse.stacks.ras import compared
from sgmon.analyse.stacks.ras_forms import parse
from sgmon.model import (
    BlockedCall,
    CauseHit,
    CauseSource,
    Compiler,
    FdTarget,
    Listener,
    LogError,
    LogState,
    PortReading,
    Process,
    Role,
    Shards,
    TcpPeer,
    Thread,
)
from sgmon.servers.family import StackRules
from sgmon.tables import TableError
from tests.ras.fake import data
from tests.stacks.stack_files import BOOK, frames, made, recorded


def match(facts: Facts, book: tuple[Cause, ...] = BOOK) -> tuple[CauseHit, ...]:
    return causes.match(facts, book)


def process(rank: str = "TP0", role: Role = Role.WORKER, state: str = "S", **fields: object) -> Process:
    pid = 1000 + (int(rank[2:]) if rank[2:].isdigit() else 99)
    return Process(pid, 1, 1, role, rank=rank, state=state, **fields)  # type: ignore[arg-type]


def lines(*text: str) -> Facts:
    return Facts(lines=text)


def stack(path: str, *others: Process, **fields: object) -> Facts:
    return Facts(dumps=(made(path),), processes=(process(**fields), *others))  # type: ignore[arg-type]


def nccl(name: str) -> Facts:
    reading = parse(data(name), "localhost:28028")
    return Facts(ras=compared(reading, reading))


BUILDING = process("TP1", compilers=(Compiler(5, "nvcc"),))

EXAMPLES: dict[str, list[Facts]] = {
    "rank-stopped": [Facts(processes=(process("TP1", state="T"),))],
    "nccl-rank-silent": [nccl("stopped.json"), nccl("stopped.json")],
    "log-reader-blocks": [Facts(processes=(process(call=BlockedCall(1, "write", 1, "pipe:[8841]")),))],
    "peer-died-elsewhere": [
        # sgl-22511
        lines(
            "Failed to check the should dump flag on TCPStore (maybe TCPStore server has shut down too early), with error: Connection reset by peer"
        ),
    ],
    "port-in-use": [
        # recorded, 0.5.23 and 0.5.17
        lines(
            "[2026-11-29 15:23:50] ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 31000): address already in use"
        ),
        lines("zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:29236')"),
        Facts(
            port=PortReading("127.0.0.1", 30000, "http", 200, listeners=(Listener("127.0.0.1:30000", 4, ours=False),))
        ),
    ],
    "port-wait": [
        lines("port 30001 is in use. Waiting for 10 seconds for nccl port to be available."),
        stack("sleep@x < wait_port_available@sglang/srt/utils/network.py", role=Role.LAUNCHER),
    ],
    "invalid-gpu": [lines("RuntimeError: CUDA error: invalid device ordinal")],
    "ninja-missing": [lines("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'")],
    "killed-by-signal-9": [
        # recorded: kill -9 while loading
        lines(
            "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check."
        ),
    ],
    "segfault": [lines("Fatal Python error: Segmentation fault")],  # sgl-3451
    "peer-missing": [
        Facts(dumps=(recorded("rendezvous.json"),)),
        Facts(dumps=(recorded("rendezvous_native.json"),)),
        lines(
            "torch.distributed.DistStoreError: Timed out after 31 seconds waiting for clients. 1/2 clients joined."
        ),
    ],
    "gloo-interface": [
        lines(
            "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"
        ),
        stack(
            "_new_process_group_helper@torch/distributed/distributed_c10d.py < new_group",
            tcp=(TcpPeer("10.0.0.1:4", "172.17.0.2:9", "SYN_SENT"),),
        ),
    ],
    "connect-unanswered": [Facts(processes=(process(tcp=(TcpPeer("10.0.0.1:4", "10.0.9.2:5000", "SYN_SENT", 4),)),))],
    "nccl-peer-refused": [
        # repo-nccl-connect-refused-35
        lines(
            "socketPollConnect: connect to 10.0.0.49<58525> returned Connection refused, retrying (34/34) after sleep for 3400 msec"
        ),
    ],
    "nccl-infiniband": [
        # repo-2node-nccl-ib-err81
        lines(
            "NCCL WARN NET/IB: Got completion from peer 10.0.0.63<51161> with status=4 opcode=32614 len=32614 vendor err 81 (Send) localGid ::ffff:10.0.0.159"
        ),
        lines("NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"),
    ],
    "nccl-init": [stack("NCCLLibrary.ncclCommInitRank@pynccl_wrapper.py < PyNcclCommunicator.__init__@pynccl.py")],
    "p2p-no-data": [
        stack("synchronize@torch/cuda/streams.py < PyNcclCommunicator.__init__@pynccl.py < GroupCoordinator.__init__")
    ],
    "custom-all-reduce": [
        stack(
            "all_gather_object@torch/distributed/distributed_c10d.py < _gather_ipc_meta@custom_all_reduce.py < CustomAllreduce.__init__"
        )
    ],
    "message-queue-address": [
        stack(
            "recv@zmq < MessageQueue.wait_until_ready@sglang/srt/distributed/device_communicators/shm_broadcast.py"
        ),
        replace(
            stack("MessageQueue.wait_until_ready@shm_broadcast.py"),
            lines=("[2025-06-23 15:07:01 TP6] Connecting to tcp://127.0.0.1:57063",),  # sgl-7478
        ),
    ],
    "shm-too-small": [lines("Error while creating shared memory segment /dev/shm/nccl-XbkvKr (size 9637888)")],
    "memory-unbalanced": [
        # sgl-5416
        lines(
            "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min_per_gpu_memory=8.8841552734375, local_gpu_memory=11.9"
        ),
    ],
    "gate": [
        stack("sleep@x < _wait_until_activated@sglang/srt/managers/gated_launch.py"),
        lines("[2026-11-29 15:00:00 TP0] Gated launch still waiting for activation, elapsed=20s"),
    ],
    "name-server": [stack("getaddrinfo@socket.py < create_connection@socket.py")],
    "hub-download": [
        stack(
            "http_get@huggingface_hub/file_download.py < hf_hub_download < snapshot_download < download_weights_from_hf"
        ),
        Facts(
            processes=(process(fds=(FdTarget(9, "/root/.cache/huggingface/hub/models--q/blobs/ab12.incomplete"),)),)
        ),
    ],
    "hub-lock": [stack("BaseFileLock.acquire@filelock/_api.py < download_weights_from_hf@weight_utils.py")],
    "checkpoint-incomplete": [
        # recorded: bad-shard
        lines(
            "model.safetensors.index.json references 1 shard file(s) missing from models/bad (incomplete download?): ['model-00003-of-00005.safetensors']"
        ),
    ],
    "slow-storage": [
        Facts(
            dumps=(recorded("weights_loader.json"),), processes=(process(state="D", wchan="folio_wait_bit_common"),)
        ),
        Facts(
            dumps=(recorded("weights_loader.json"),),
            processes=(process(shards=Shards(("a.safetensors",), fstype="nfs4")),),
        ),
    ],
    "hung-storage": [Facts(processes=(process(state="D", wchan="folio_wait_bit_common"),))],
    "cuda-driver-lock": [
        # sgl-29821: pool threads of the loader, one in a page fault
        Facts(
            dumps=(
                replace(
                    made("result@concurrent/futures/_base.py < load_weights@m.py"),
                    threads=(
                        Thread(1, "MainThread"),
                        Thread(
                            2,
                            "pool",
                            frames=frames(
                                "pthread_mutex_lock@libc.so.6 < hip::memcpy_and_sync@libc10_hip.so < FusedMoE._load_w13@fused_moe.py"
                            ),
                        ),
                    ),
                ),
            ),
            processes=(process(thread_states=(("D:folio_wait_bit_common", 1), ("S:futex_do_wait", 7))),),
        ),
    ],
    "dma-from-mmap": [stack("cuMemcpyHtoDAsync_v2@libcuda.so.1 < copy_@x < weight_loader@linear.py", state="R")],
    "weight-post-processing": [
        stack("permute@x < process_weights_after_loading@fp8.py < load_weights_and_postprocess@loader.py")
    ],
    "slowest-rank-loads": [
        Facts(dumps=(recorded("load_tp0_barrier.json"),)),
        # sgl-4503
        lines(
            "ValueError: TP rank 1 could finish the model loading, but there are other ranks that didn't finish loading."
        ),
    ],
    "cuda-out-of-memory": [
        # recorded: oom_big
        lines(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 924.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 838.12 MiB is free."
        ),
    ],
    "no-room-for-kv": [
        # recorded: oom_frac
        lines(
            "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.1. Raise --mem-fraction-static above 0.111"
        ),
        lines("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
    ],
    "pinning-host-memory": [
        stack("cudaHostRegister@libcudart.so.13 < HostKVCache.__init__@memory_pool_host.py"),
        lines("Allocating 120.00 GB host memory for hierarchical KV cache."),
    ],
    "stale-jit-lock": [
        stack("FileBaton.wait@torch/utils/file_baton.py < _jit_compile@torch/utils/cpp_extension.py"),
        # sgl-16242
        Facts(
            processes=(process(),),
            lines=("[aiter] waiting for baton release at /sgl-workspace/aiter/aiter/jit/build/lock_module_rmsnorm",),
        ),
        Facts(dumps=(recorded("jit_tp1_filelock.json", "TP1"),), processes=(process("TP1"),)),
        Facts(dumps=(recorded("jit_tp0_tvm_lock.json"),), processes=(process(),)),
    ],
    "jit-build": [
        Facts(dumps=(recorded("jit_tp0_ninja.json"),)),
        Facts(dumps=(recorded("triton_build.json"),)),
        Facts(dumps=(recorded("jit_tp1_filelock.json", "TP0"),), processes=(process("TP0"), BUILDING)),
    ],
    "deepgemm-compile": [
        stack("wait@x < _compile_deep_gemm_one_type_all@compile_utils.py"),
        # sgl-29170
        lines(
            "[2026-06-24 11:52:11] Try DeepGEMM JIT Compiling for <GEMM_NT_F8F8BF16> N=14336, K=5120, num_groups=1 with all Ms."
        ),
    ],
    "flashinfer-autotune": [
        stack("AutoTuner.choose_one@flashinfer/autotuner.py < _dummy_run < BaseRunner._flashinfer_autotune"),
        lines("Running FlashInfer autotune with cache: /root/.cache/flashinfer/autotune.json"),
    ],
    "aiter-build": [
        lines("[aiter] start build [module_aiter_enum] under /sgl-workspace/aiter/aiter/jit/build/module_aiter_enum")
    ],
    "inductor-compile": [Facts(dumps=(recorded("inductor.json"),)), lines("AUTOTUNE mm(128x4096, 4096x4096)")],
    "crossed-collectives": [
        nccl("crossed.json"),
        Facts(
            dumps=(recorded("capture_tp0_synchronize_a.json", "TP0"), recorded("capture_tp1_barrier_a.json", "TP1"))
        ),
    ],
    "rank-behind": [nccl("late_rank.json"), nccl("late_rank.json")],
    "capture-failed": [lines("[01:40:22 TP1] Exception: Capture cuda graph failed: ")],  # repo-rocm-tp2-capture-shim
    "bind-failed-hangs": [Facts(dumps=(recorded("launcher_bind_failed.json", "", role=Role.LAUNCHER),))],
    "warmup-compiles": [Facts(dumps=(recorded("inductor.json"),))],
    "disaggregation-bootstrap": [
        lines("Prefill instance failed to register to bootstrap server with status code 500")
    ],
}


@pytest.mark.parametrize("name", [cause.id for cause in BOOK])
def test_entry(name: str) -> None:
    assert EXAMPLES[name], name
    for facts in EXAMPLES[name]:
        hits = {hit.id: hit for hit in match(facts)}
        assert name in hits, (name, sorted(hits))
        hit = hits[name]
        assert 0 < hit.confidence <= 1
        assert hit.advice and hit.title and hit.evidence
        assert all(source.startswith("https://") for source in hit.sources) and hit.sources


def test_the_book_is_sound() -> None:
    assert len({cause.id for cause in BOOK}) == len(BOOK) == len(EXAMPLES)


def test_a_server_of_a_family_without_causes_has_the_general_ones() -> None:
    general = book_of(StackRules())
    assert {"rank-stopped", "cuda-out-of-memory"} <= {cause.id for cause in general} < {cause.id for cause in BOOK}
    (hit,) = match(lines("torch.OutOfMemoryError: CUDA out of memory."), general)
    assert "--mem-fraction-static" not in hit.advice


@pytest.mark.parametrize(
    "name",
    [
        "kv_profile.json",
        "importing.json",
        "detokenizer.json",
        "launcher_waits.json",
        "launcher_serves.json",
        "event_loop_broadcast.json",
        "weights_loader.json",
        "warmup_tp1_forward.json",
    ],
)
def test_healthy_stacks_have_no_cause(name: str) -> None:
    role = "launcher" if name.startswith("launcher") else "detokenizer" if name.startswith("det") else Role.WORKER
    assert match(Facts(dumps=(recorded(name, role=role),), processes=(process(role=role),))) == ()


def test_a_lock_with_a_live_compiler_is_a_build_not_a_stale_lock() -> None:
    facts = Facts(dumps=(recorded("jit_tp1_filelock.json", "TP0"),), processes=(process("TP0"), BUILDING))
    assert [hit.id for hit in match(facts)] == ["jit-build"]
    assert match(facts)[0].slow


def test_nothing_is_concluded_from_what_cannot_be_seen() -> None:
    """Without /proc nobody knows whether a compiler runs."""
    assert match(Facts(dumps=(recorded("jit_tp1_filelock.json"),))) == ()
    assert match(Facts()) == ()


def test_unequal_counts_of_one_answer_prove_nothing() -> None:
    assert match(Facts(ras=parse(data("late_rank.json"), "localhost:28028"))) == ()


def test_the_line_with_all_arguments_names_no_cause() -> None:
    assert (
        match(
            lines("server_args={'flashinfer_autotune': 'Running FlashInfer autotune', 'x': 'address already in use'}")
        )
        == ()
    )


def test_the_logs_first_error_counts() -> None:
    log = LogState(error=LogError("oom_cuda", 7, "torch.OutOfMemoryError: CUDA out of memory."))
    assert [hit.id for hit in match(Facts(log=log))] == ["cuda-out-of-memory"]


def test_order_command_and_ranks() -> None:
    facts = Facts(
        dumps=(recorded("load_tp0_barrier.json", "TP0"),),
        processes=(process("TP0"), process("TP1", state="T")),
    )
    hits = match(facts)
    assert [hit.id for hit in hits] == ["rank-stopped", "slowest-rank-loads"]
    assert hits[0].command == "kill -CONT 1001"
    assert hits[0].ranks == ("TP1",)
    assert hits[1].evidence == ("TP0: is in monitored_barrier",)


def test_what_a_cause_was_read_from() -> None:
    def sources(facts: Facts, name: str) -> tuple[CauseSource, ...]:
        return next(hit.read_from for hit in match(facts) if hit.id == name)

    assert sources(replace(nccl("late_rank.json"), ras_t=41.0), "rank-behind") == (CauseSource("ras", t=41.0),)
    assert sources(lines("CUDA out of memory"), "cuda-out-of-memory") == (CauseSource("log"),)
    assert sources(Facts(processes=(process("TP1", state="T"),)), "rank-stopped") == (CauseSource("process", "TP1"),)
    assert sources(Facts(dumps=(recorded("load_tp0_barrier.json", "TP0", 5),)), "slowest-rank-loads") == (
        CauseSource("stack", "TP0", 5.0),
    )
    assert sources(EXAMPLES["slow-storage"][0], "slow-storage") == (
        CauseSource("stack", "TP0", 0.0),
        CauseSource("process", "TP0"),
    )
    assert sources(EXAMPLES["port-in-use"][2], "port-in-use") == (CauseSource("port"),)


USER = """
[[cause]]
id = "our-proxy"
title = "the proxy of building 7"
confidence = 0.99
when = [{ log = "proxy-7" }]

[[cause]]
id = "gate"
title = "ask Ada"
when = [{ stack = "_wait_until_activated" }]
"""


def test_users_can_add_and_replace_entries() -> None:
    book = with_entries(BOOK, parse_book(USER, "causes.toml of the user", by_user=True))
    (hit,) = match(lines("403 from proxy-7"), book)
    assert (hit.id, hit.by_user) == ("our-proxy", True)
    (gate,) = match(stack("_wait_until_activated@x.py"), book)
    assert gate.title == "ask Ada"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[cause]", "not TOML"),
        ("[[causes]]\nid = 'a'", "unknown entry 'causes'"),
        ("[[cause]]\nid = 'a'", "cause a: Object missing required field `title`"),
        ("[[cause]]\nid = 'a'\ntitle = 'b'\nwhen = []", "length >= 1 - at `$.when`"),
        ("[[cause]]\ntitle = 'b'\nwhen = [{ log = 'x' }]", "cause 1: Object missing required field `id`"),
        ("[[cause]]\nid = 'a'\ntitle = 'b'\nwhen = [{ log = '(' }]", "cause a: missing )"),
        ("[[cause]]\nid = 'a'\ntitle = 'b'\nwhen = [{ logs = 'x' }]", "unknown field `logs` - at `$.when[0]`"),
        (
            "[[cause]]\nid = 'a'\ntitle = 'b'\nwhen = [{ ras = 'odd' }]",
            "Invalid enum value 'odd' - at `$.when[0].ras`",
        ),
        ("[[cause]]\nid = 'a'\ntitle = 'b'\nwhen = [{ confidence = 0.5 }]", "something to look at"),
        ("[[cause]]\nid = 'a'\ntitle = 'b'\nconfidence = 7\nwhen = [{ log = 'x' }]", "<= 1.0 - at `$.confidence`"),
        ("[[cause]]\nid = 'a'\ntitle = 'b'\nwhy = 7\nwhen = [{ log = 'x' }]", "unknown field `why`"),
        ("[[cause]]\nid = 'a'\ntitle = 'b'\nwhen = [{ stack = 'a <  < b' }]", "empty frame"),
        ("[[cause]]\nid = 'a'\ntitle = 'b'\nwhen = [{ role = 'shceduler' }]", "unknown role 'shceduler'"),
    ],
)
def test_mistakes_in_a_users_book_are_said_in_words(text: str, words: str) -> None:
    with pytest.raises(TableError) as caught:
        parse_book(text, "my.toml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("my.toml")
