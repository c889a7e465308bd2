"""The role of a process from its command line: what its family's title says, else what any server may have below it.

comm is cut at 15 bytes, so the command line decides.
"""

from __future__ import annotations

from sgmon.model import Role
from sgmon.patterns import regex
from sgmon.servers.family import ServerFamily

_SPAWN = "from multiprocessing.spawn import spawn_main"
_TRACKER = "from multiprocessing.resource_tracker import"
_COMPILER_NAMES = """
ninja nvcc cicc ptxas fatbinary cudafe++ nvlink cc1plus cc1 collect2 g++ gcc c++ cc as ld lld ld.lld ld.gold clang
clang++ hipcc amdclang++ llc opt ccache sccache cmake make lto1 lto-wrapper
"""
_COMPILERS = frozenset(_COMPILER_NAMES.split())
_COMPILER_FORMS = regex(r"^(?:.*-linux-gnu-)?(?:g\+\+|gcc|c\+\+|clang(?:\+\+)?|ld)(?:-[\d.]+)?$")
_SOURCE = regex(r"\.(?:cu|cpp|cc|cxx|c|ptx|hip|s|ii|cubin|o|so)$")


def role_of(argv: tuple[str, ...], family: ServerFamily) -> Role:
    """The role by the command line alone; Role.OTHER when it tells none."""
    if not argv:
        return Role.OTHER
    titled = family.discovery.role_of(argv)
    if titled is not Role.OTHER:
        return titled
    if is_spawned(argv):
        return Role.IMPORTING
    if is_tracker(argv):
        return Role.RESOURCE_TRACKER
    return Role.COMPILER if is_compiler(argv) else Role.OTHER


def is_spawned(argv: tuple[str, ...]) -> bool:
    """Whether this is a child of Python's multiprocessing, start method "spawn", that has no title yet."""
    return any(_SPAWN in word for word in argv[1:])


def is_tracker(argv: tuple[str, ...]) -> bool:
    """Whether this is the resource tracker that multiprocessing starts below the process that uses it."""
    return any(_TRACKER in word for word in argv[1:])


def role_of_comm(comm: str, family: ServerFamily) -> Role:
    """The role of a process that has no command line any more (a zombie): comm is the title's first 15 bytes."""
    titled = family.discovery.role_of_comm(comm)
    return Role.IMPORTING if titled is Role.OTHER and comm.startswith("python") else titled


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
