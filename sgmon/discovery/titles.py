"""What a process of the tree is, from its command line (comm is cut at 15 bytes), and its rank tokens.

Titles: sglang 0.4.1.post7 ... 0.5.23, managers/scheduler.py (``configure_scheduler_process``), managers/
detokenizer_manager.py, managers/data_parallel_controller.py, entrypoints/http_server.py.
"""

from __future__ import annotations

import re

#: in any order; the longer names first, so that ATTN_CP0 is not read as CP0
_TOKEN = re.compile(r"(?:(?<=[_\s:])|^)(ATTN_CP|MOE_DP|DP|PP|TP|EP)(\d+)(?=$|[_\s])")
_SPAWN = "from multiprocessing.spawn import spawn_main"
_TRACKER = "from multiprocessing.resource_tracker import"
_COMPILER_NAMES = """
ninja nvcc cicc ptxas fatbinary cudafe++ nvlink cc1plus cc1 collect2 g++ gcc c++ cc as ld lld ld.lld ld.gold clang
clang++ hipcc amdclang++ llc opt ccache sccache cmake make lto1 lto-wrapper
"""
_COMPILERS = frozenset(_COMPILER_NAMES.split())
_COMPILER_FORMS = re.compile(r"^(?:.*-linux-gnu-)?(?:g\+\+|gcc|c\+\+|clang(?:\+\+)?|ld)(?:-[\d.]+)?$")
_SOURCE = re.compile(r"\.(?:cu|cpp|cc|cxx|c|ptx|hip|s|ii|cubin|o|so)$")


def rank_of(title: str) -> str:
    """The rank tokens as SGLang's log prefix spells them: "sglang::scheduler_DP0_TP1" -> "DP0 TP1"."""
    tail = title.partition("scheduler")[2]
    return " ".join(name + number for name, number in _TOKEN.findall(tail))


def role_of(argv: tuple[str, ...]) -> str:
    """Role by the title alone: scheduler, detokenizer, dp_controller, tokenizer, launcher, importing,
    resource_tracker, compiler, or other."""
    if not argv:
        return "other"
    title = argv[0]
    if title.startswith(("sglang::", "sgl_diffusion::")):
        name = title.partition("::")[2]
        for start, role in (
            ("scheduler", "scheduler"),
            ("detokenizer", "detokenizer"),
            ("data_parallel_controller", "dp_controller"),
            ("tokenizer_worker", "tokenizer"),
            ("http_server", "launcher"),
            ("server", "launcher"),
        ):
            if name.startswith(start):
                return role
        return "other"
    if any(_SPAWN in word for word in argv[1:]):
        return "importing"
    if any(_TRACKER in word for word in argv[1:]):
        return "resource_tracker"
    return "compiler" if is_compiler(argv) else "other"


def role_of_comm(comm: str) -> str:
    """Role of a process that has no command line any more (a zombie): comm is the title's first 15 bytes."""
    for start, role in (
        ("sglang::schedul", "scheduler"),
        ("sgl_diffusion::", "scheduler"),
        ("sglang::detoken", "detokenizer"),
        ("sglang::data_pa", "dp_controller"),
        ("sglang::tokeniz", "tokenizer"),
        ("python", "importing"),
    ):
        if comm.startswith(start):
            return role
    return "other"


def is_compiler(argv: tuple[str, ...]) -> bool:
    """Whether this command compiles: the programs of CUDA, ROCm and GCC, and torch inductor's worker processes."""
    name = argv[0].rsplit("/", 1)[-1]
    if name in _COMPILERS or _COMPILER_FORMS.match(name):
        return True
    return any("_inductor/compile_worker" in word or word == "torch._inductor.compile_worker" for word in argv[1:4])


def compiler_name(argv: tuple[str, ...], comm: str) -> str:
    """The program's short name; "inductor" for torch's compile workers."""
    if not argv:
        return comm
    if any("_inductor" in word for word in argv[1:4]):
        return "inductor"
    return argv[0].rsplit("/", 1)[-1]


def what_it_builds(argv: tuple[str, ...]) -> str:
    """What the command line names: its -o, its source file, or ninja's folder; "" without one."""
    for flag in ("-o", "--output-file", "-C"):
        if flag in argv[:-1]:
            return argv[argv.index(flag) + 1].rsplit("/", 1)[-1] or argv[argv.index(flag) + 1]
    for word in argv[1:]:
        if not word.startswith("-") and _SOURCE.search(word):
            return word.rsplit("/", 1)[-1]
    return ""
