"""The families of servers that sgmon knows, by name. The only module that imports a family."""

from __future__ import annotations

from sgmon.servers.family import LogRules
from sgmon.servers.sglang.log import RULES


def log_rules() -> tuple[LogRules, ...]:
    """How each family writes its log, the most common first."""
    return (RULES,)
