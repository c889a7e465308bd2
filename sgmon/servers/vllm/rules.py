"""vLLM's own waits that are meant. A rule returns a verdict without phase and log: the caller adds both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sgmon.analyse.diagnosis.context import Context
    from sgmon.model import Verdict

RULES: tuple[Callable[[Context], Verdict | None], ...] = ()
