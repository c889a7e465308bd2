"""What a process does in a server, in words that no family of servers owns."""

from __future__ import annotations

from enum import Enum

#: names in recordings made before roles were neutral
_OLD_NAMES = {"scheduler": "worker", "dp_controller": "controller"}


class Role(str, Enum):
    """The role of a process. A family says what it calls each (``ServerFamily.role_labels``).

    WORKER: holds a rank and its GPU (SGLang's scheduler, vLLM's worker). ENGINE: drives workers and holds no rank,
    unless it is the only one. CONTROLLER: spreads work over data-parallel replicas. API_SERVER: answers HTTP beside
    the launcher. IMPORTING: a child that still imports Python modules and has no title yet.
    """

    LAUNCHER = "launcher"
    WORKER = "worker"
    ENGINE = "engine"
    CONTROLLER = "controller"
    API_SERVER = "api_server"
    TOKENIZER = "tokenizer"
    DETOKENIZER = "detokenizer"
    IMPORTING = "importing"
    RESOURCE_TRACKER = "resource_tracker"
    WEIGHT_CACHE = "weight_cache"
    COMPILER = "compiler"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> Role:
        return cls(_OLD_NAMES[value]) if isinstance(value, str) and value in _OLD_NAMES else cls.OTHER

    def __str__(self) -> str:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)


#: roles whose life and death matter; compilers and helpers come and go
ESSENTIAL_ROLES = frozenset(
    {
        Role.LAUNCHER,
        Role.WORKER,
        Role.ENGINE,
        Role.CONTROLLER,
        Role.API_SERVER,
        Role.TOKENIZER,
        Role.DETOKENIZER,
        Role.IMPORTING,
        Role.WEIGHT_CACHE,
    }
)
