from __future__ import annotations

import pytest

from sgmon.discovery.birth_order import Child, infer
from sgmon.discovery.process_roles import is_compiler, role_of, what_it_builds
from sgmon.model import Role, ServerArgs
from sgmon.servers.family import Slot
from sgmon.servers.sglang import FAMILY
from sgmon.servers.sglang.ranks import gpu_of, of_controller, of_launcher, rank_labels
from sgmon.servers.sglang.titles import rank_of

SPAWN = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=7, pipe_handle=9)"


@pytest.mark.parametrize(
    ("title", "rank"),
    [
        ("sglang::scheduler", ""),
        ("sglang::scheduler_TP0", "TP0"),
        ("sglang::scheduler_DP0_TP1", "DP0 TP1"),
        ("sglang::scheduler_TP3_EP1_PP0", "TP3 EP1 PP0"),
        ("sglang::scheduler_DP1_PP0_ATTN_CP2_MOE_DP3_TP11_EP4", "DP1 PP0 ATTN_CP2 MOE_DP3 TP11 EP4"),
        ("sglang::scheduler TP0", "TP0"),
        ("sgl_diffusion::scheduler_TP1_U0", "TP1"),
        ("sgl_diffusion::scheduler:1", ""),
        ("sglang::detokenizer", ""),
    ],
)
def test_tokens_in_any_order(title, rank):
    assert rank_of(title) == rank


@pytest.mark.parametrize(
    ("argv", "role"),
    [
        (("sglang::scheduler_TP0",), Role.WORKER),
        (("sglang::detokenizer_router",), "detokenizer"),
        (("sglang::data_parallel_controller",), Role.CONTROLLER),
        (("sglang::tokenizer_worker:77",), "tokenizer"),
        (("sglang::http_server/tokenizer_manager",), "launcher"),
        (("python", "-c", SPAWN, "--multiprocessing-fork"), "importing"),
        (("numactl", "-m", "0", "python", "-c", SPAWN), "importing"),
        (("/bin/sh", "/tmp/sglang_temp_file_1_2.sh", "-c", SPAWN), "importing"),
        (("python", "-c", "from multiprocessing.resource_tracker import main;main(6)"), "resource_tracker"),
        (("/usr/bin/ninja", "-v"), "compiler"),
        (("/usr/local/cuda/bin/cicc",), "compiler"),
        (("/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "-quiet"), "compiler"),
        (("x86_64-linux-gnu-g++-12",), "compiler"),
        (("python", "-m", "torch._inductor.compile_worker"), "compiler"),
        (("python", "/v/torch/_inductor/compile_worker/__main__.py", "--kind=x"), "compiler"),
        (("numactl",), "other"),
        ((), "other"),
    ],
)
def test_roles(argv, role):
    assert role_of(argv, FAMILY) == role


def test_what_a_compiler_builds():
    assert what_it_builds(("nvcc", "-c", "/a/norm.cu", "-o", "/b/norm.cuda.o")) == "norm.cuda.o"
    assert what_it_builds(("cc1plus", "-quiet", "/tmp/x/kernel.cpp")) == "kernel.cpp"
    assert what_it_builds(("ninja", "-C", "/cache/batch_prefill/")) == "/cache/batch_prefill/"
    assert what_it_builds(("ninja", "-o")) == ""
    assert is_compiler(("ld.gold",)) and not is_compiler(("ldconfig",))


@pytest.mark.parametrize(
    ("args", "version", "ranks"),
    [
        (ServerArgs(), "0.5.23", ("",)),
        (ServerArgs(), "0.4.1.post7", ("TP0",)),
        (ServerArgs(tp=2), "", ("TP0", "TP1")),
        (ServerArgs(tp=2, pp=2), "0.5.23", ("PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1")),
        (ServerArgs(tp=2, pp=2), "0.5.2", ("TP0 PP0", "TP1 PP0", "TP0 PP1", "TP1 PP1")),
        (ServerArgs(dp=2), "0.5.23", ("DP0", "DP1")),
        (ServerArgs(dp=2, tp=2), "0.5.23", ("DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1")),
        (ServerArgs(dp=2, tp=4, dp_attention=True), "", ("DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3")),
        (ServerArgs(tp=4, ep=2), "0.5.23", ("TP0 EP0", "TP1 EP0", "TP2 EP1", "TP3 EP1")),
        (ServerArgs(tp=4, nnodes=2, node_rank=1), "0.5.23", ("TP2", "TP3")),
        (ServerArgs(tp=2, pp=2, nnodes=2, node_rank=1), "0.5.23", ("PP1 TP0", "PP1 TP1")),
        (ServerArgs(tp=16, nnodes=2, node_rank=0), "0.5.23", tuple(f"TP{n}" for n in range(8))),
    ],
)
def test_ranks_of_a_node(args, version, ranks):
    assert rank_labels(args, version) == ranks


def test_birth_order():
    slots = of_launcher(ServerArgs(tp=2), "0.5.23")
    assert infer([Child(10), Child(11), Child(12)], slots) == {
        10: Slot(Role.WORKER, "TP0"),
        11: Slot(Role.WORKER, "TP1"),
        12: Slot("detokenizer"),
    }
    titled = Child(12, Slot("detokenizer"))
    assert infer([Child(10), Child(11, Slot(Role.WORKER, "TP1")), titled], slots) == {10: Slot(Role.WORKER, "TP0")}
    assert infer([], slots) == {}


def test_titles_are_obeyed_where_they_contradict():
    slots = of_launcher(ServerArgs(tp=3), "0.5.23")
    seen = [Child(10, Slot(Role.WORKER, "TP2")), Child(11), Child(12), Child(13, Slot("other"))]
    assert infer(seen, slots) == {11: Slot(Role.WORKER, "TP0"), 12: Slot(Role.WORKER, "TP1")}


def test_a_token_more_in_the_title_is_no_contradiction():
    slots = of_launcher(ServerArgs(tp=2), "0.5.23")
    assert infer([Child(10, Slot(Role.WORKER, "TP0 EP0")), Child(11)], slots) == {11: Slot(Role.WORKER, "TP1")}


def test_controllers():
    plain, attention = ServerArgs(dp=2), ServerArgs(dp=2, tp=2, dp_attention=True)
    assert [s.role for s in of_launcher(plain, "0.5.23")] == [Role.CONTROLLER, "detokenizer"]
    assert [s.rank for s in of_controller(plain, "0.5.23")] == ["DP0", "DP1"]
    roles = [s.role for s in of_launcher(attention, "0.5.23")]
    assert roles == [Role.WORKER, Role.WORKER, Role.CONTROLLER, "detokenizer"]
    assert of_controller(attention, "0.5.23") == ()
    assert [s.role for s in of_launcher(attention, "0.5.9")] == [Role.CONTROLLER, "detokenizer"]
    assert [s.role for s in of_launcher(ServerArgs(nnodes=2, node_rank=1, tp=2))] == [Role.WORKER]
    daemons = ServerArgs(raw=(("weight_cache_mode", "daemon"),))
    assert [s.role for s in of_launcher(daemons)] == ["weight_cache", Role.WORKER, "detokenizer"]


@pytest.mark.parametrize(
    ("args", "rank", "expected"),
    [
        (ServerArgs(tp=8), "TP5", 5),
        (ServerArgs(tp=4, base_gpu_id=4), "TP1", 5),
        (ServerArgs(tp=4, gpu_id_step=2), "TP3", 6),
        (ServerArgs(tp=16, nnodes=2), "TP11", 3),
        (ServerArgs(tp=4, pp=2), "PP1 TP3", 7),
        (ServerArgs(tp=4, pp=2, nnodes=2), "PP1 TP3", 3),
        (ServerArgs(tp=2, dp=4), "DP3 TP1", 7),
        (ServerArgs(tp=8, dp=8, dp_attention=True), "DP5 TP5", 5),
        (ServerArgs(), "", 0),
        (ServerArgs(device="cpu"), "", None),
    ],
)
def test_gpu_of_a_rank(args, rank, expected):
    assert gpu_of(args, rank) == expected
