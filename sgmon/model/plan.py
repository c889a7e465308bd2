"""What a start will take of each GPU, before it happens, and what earlier starts of its kind took."""

from __future__ import annotations

from msgspec import Struct


class MemoryTaken(Struct, frozen=True):
    """What a rank took of its GPU, by the log, in bytes. context_bytes: before its weights (CUDA, NCCL, libraries).

    kv_bytes: the KV cache with its tables. graph_bytes: CUDA graphs. None: the log does not say.
    """

    context_bytes: int | None = None
    weights_bytes: int | None = None
    kv_bytes: int | None = None
    graph_bytes: int | None = None


class MemoryPlan(Struct, frozen=True):
    """What one rank will take of a GPU, in bytes. None: not known.

    free_bytes: what this start can have. context_bytes: before the weights. weights_bytes: expected; least_bytes:
    what they take at least, by the headers. budget_bytes: what the server grants to weights and KV cache together;
    most_bytes: the same at its most, which only a wrong reading could exceed. share: of the memory, as the server
    takes it; share_from: "argument", "formula" (the server computes it, as it was read in its source) or "default".
    token_bytes: of the KV cache for one token; tokens: how many fit. reserve_bytes: what the server leaves for
    activations and CUDA graphs. learned: from how many finished starts; 0: from the files alone. error: of
    weights_bytes and kv_bytes, as a share of weights and KV cache together.
    """

    gpu: int
    ranks: str = ""
    free_bytes: int | None = None
    context_bytes: int | None = None
    weights_bytes: int | None = None
    least_bytes: int | None = None
    budget_bytes: int | None = None
    most_bytes: int | None = None
    share: float | None = None
    share_from: str = ""
    kv_bytes: int | None = None
    token_bytes: int | None = None
    tokens: int | None = None
    reserve_bytes: int | None = None
    learned: int = 0
    error: float = 0.0
