"""What a family must tell so that the memory of a rank can be planned (``sgmon.foresight.plan``)."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from sgmon.model import ServerArgs
from sgmon.model.preflight import Installed

GIB = 1024**3


class Share(Struct, frozen=True):
    """The share of the memory that weights and KV cache may take together. source: "argument", "formula", "default".

    most: what it is at its most, in a version whose formula was not read; 1.0: nothing is known.
    """

    value: float
    source: str
    most: float


class MemoryRules(Struct, frozen=True):
    """share: of (arguments, bytes of the GPU, version, what the installed files tell, variables by name); None: not
    known. context_bytes: what a rank takes before its weights, measured. besides_bytes: what else the server takes
    out of that share (activations of its profile run), measured. fits_longest: whether it refuses a KV cache that
    does not hold one request of the greatest length. balanced: (proof, variable that switches it off): it refuses
    GPUs of which one has less than nine tenths of another's free memory.
    """

    share: Callable[[ServerArgs, int, str, Installed, dict[str, str]], Share | None] = field(
        default=lambda args, total, version, installed, env: None
    )
    context_bytes: Callable[[ServerArgs], int] = field(default=lambda args: GIB // 2)
    besides_bytes: Callable[[ServerArgs], int] = field(default=lambda args: 0)
    fits_longest: bool = False
    balanced: tuple[str, tuple[str, ...]] | None = None


def given_share(text: str) -> Share | None:
    """The share of an argument; None: it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return Share(value, "argument", value) if 0 < value <= 1 else None
