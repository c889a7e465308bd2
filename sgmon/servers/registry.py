"""The families of servers that sgmon knows, by name. The only module that imports a family."""

from __future__ import annotations

from collections.abc import Iterable

from sgmon.model.roles import Role
from sgmon.servers import diffusion, sglang, vllm
from sgmon.servers.family import Launch, LogRules, ServerFamily, unknown_family
from sgmon.text import is_secret_name

_FAMILIES: dict[str, ServerFamily] = {family.name: family for family in (sglang.FAMILY, vllm.FAMILY)}
#: families that are found and read as well, and are no choice of their own in a sentence: their command lines are
#: asked first, for they are the narrower ones
_READ = {diffusion.FAMILY.name: diffusion.FAMILY}
_FOUND = {**_READ, **_FAMILIES}


def families() -> tuple[ServerFamily, ...]:
    """Every family, the most common first."""
    return tuple(_FAMILIES.values())


def get(name: str) -> ServerFamily:
    """The family of that name (``Server.family``); an unknown one where a newer sgmon has recorded it."""
    return _FAMILIES.get(name) or _READ.get(name) or unknown_family(name)


def recognise(argv: tuple[str, ...]) -> tuple[ServerFamily, Launch] | None:
    """The family that this command line starts a server of, and the launch; None when it starts none."""
    for family in _FOUND.values():
        launch = family.discovery.recognise(argv)
        if launch is not None:
            return family, launch
    return None


def family_of_title(argv: tuple[str, ...]) -> ServerFamily | None:
    """The family that gives its processes such a title; None for a process that is none of theirs."""
    for family in _FOUND.values():
        if family.discovery.role_of(argv) is not Role.OTHER:
            return family
    return None


def family_of_own_env(names: Iterable[str]) -> ServerFamily | None:
    """The family whose code sets environment variables of these names before it spawns; None for none of them."""
    given = tuple(names)
    for family in _FAMILIES.values():
        if any(name.startswith(family.discovery.own_env) for name in given):
            return family
    return None


def log_rules() -> tuple[LogRules, ...]:
    """How each family writes its log, the most common first."""
    known = (*_FAMILIES.values(), *_READ.values())
    return tuple(family.log for family in known if family.log is not None)


def is_secret_flag(flag: str) -> bool:
    """Whether a flag holds a secret, in its own spelling or, abbreviated ("--api-k"), in that of a family."""
    names = (flag, *(family.discovery.full_flag(flag) for family in _FAMILIES.values()))
    return any(is_secret_name(name) for name in names)


def duration_flags() -> frozenset[str]:
    """Arguments of any family that change how long a start takes: only starts with equal ones are compared."""
    return frozenset().union(*(family.duration_flags for family in _FAMILIES.values()))


def role_label(name: str, role: Role) -> str:
    """What the family of that name calls a role on the screen: "scheduler", "DP controller", "resource tracker"."""
    return get(name).role_labels.get(role) or role.value.replace("_", " ")
