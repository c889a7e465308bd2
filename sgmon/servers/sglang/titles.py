"""Role and rank from the titles that SGLang gives its processes.

Titles: sglang 0.4.1.post7 ... 0.5.23, managers/scheduler.py (``configure_scheduler_process``), managers/
detokenizer_manager.py, managers/data_parallel_controller.py, entrypoints/http_server.py.
"""

from __future__ import annotations

from sgmon.model import Role
from sgmon.patterns import regex

#: in any order; the longer names first, so that ATTN_CP0 is not read as CP0
_TOKEN = regex(r"(?:(?<=[_\s:])|^)(ATTN_CP|MOE_DP|DP|PP|TP|EP)(\d+)(?=$|[_\s])")
_PREFIXES = ("sglang::", "sgl_diffusion::")
#: the start of the name after the prefix -> role
_NAMES = (
    ("scheduler", Role.WORKER),
    ("detokenizer", Role.DETOKENIZER),
    ("data_parallel_controller", Role.CONTROLLER),
    ("tokenizer_worker", Role.TOKENIZER),
    ("http_server", Role.LAUNCHER),
    ("server", Role.LAUNCHER),
)
#: an actor of --use-ray (srt/ray/scheduler_actor.py): Ray's own title takes the place of SGLang's, and names no rank
_ACTOR = "ray::SchedulerActor"
_COMMS = (
    ("ray::SchedulerA", Role.WORKER),
    ("sglang::schedul", Role.WORKER),
    ("sgl_diffusion::", Role.WORKER),
    ("sglang::detoken", Role.DETOKENIZER),
    ("sglang::data_pa", Role.CONTROLLER),
    ("sglang::tokeniz", Role.TOKENIZER),
)


def rank_of(title: str) -> str:
    """The rank tokens as SGLang's log prefix spells them: "sglang::scheduler_DP0_TP1" -> "DP0 TP1"."""
    tail = title.partition("scheduler")[2]
    return " ".join(name + number for name, number in _TOKEN.findall(tail))


def role_of(argv: tuple[str, ...]) -> Role:
    """The role that the title says; Role.OTHER when it is none of SGLang's."""
    if argv and argv[0].startswith(_ACTOR):
        return Role.WORKER
    if not argv or not argv[0].startswith(_PREFIXES):
        return Role.OTHER
    name = argv[0].partition("::")[2]
    return next((role for start, role in _NAMES if name.startswith(start)), Role.OTHER)


def role_of_comm(comm: str) -> Role:
    """The role by the first 15 bytes of a title."""
    return next((role for start, role in _COMMS if comm.startswith(start)), Role.OTHER)
