"""What NCCL says of itself: one answer of its RAS port (on by default since NCCL 2.24)."""

from __future__ import annotations

from msgspec import Struct


class RasRank(Struct, frozen=True):
    """One rank of a communicator. counts: collectives launched so far, by name; None: not told (text form).

    A missing rank gave no data in time: ``unresponsive`` or already ``dead`` in NCCL's eyes.
    """

    rank: int
    host: str = ""
    pid: int | None = None
    gpu: int | None = None
    counts: tuple[tuple[str, int], ...] | None = None
    missing: bool = False
    unresponsive: bool = False
    dead: bool = False


class RasCommunicator(Struct, frozen=True):
    """One communicator. status: OK | MISMATCH (counts differ) | INCOMPLETE (ranks missing) | NCCL's own word.

    behind: ranks with the lower count, who have not entered the collective the others wait in.
    crossed: each is ahead in another collective, so the ranks do not call the same ones.
    """

    hash: str
    size: int
    ranks: tuple[RasRank, ...] = ()
    status: str = ""
    operation: str = ""  # the collective whose counts differ
    behind: tuple[int, ...] = ()
    crossed: bool = False


class RasReading(Struct, frozen=True):
    """One answer.

    answer: "ok", "refused" (nobody listens: before the first communicator, after the job, or switched
    off), "no_response" (connects, and the handshake is never answered: a stopped NCCL process), "unreachable",
    "garbled". unanswered_connections: handshakes that were never answered before one was, evidence of the same.
    unequal_unchanged: counts differ and none moved since the previous answer; None: no answer to compare.
    """

    address: str
    answer: str
    version: str = ""
    form: str = ""  # "json" | "text"
    communicators: tuple[RasCommunicator, ...] = ()
    connections: int = 0
    unanswered_connections: int = 0
    took_s: float | None = None
    unequal_unchanged: bool | None = None
    warnings: tuple[str, ...] = ()
    note: str = ""
    remedy: str = ""
