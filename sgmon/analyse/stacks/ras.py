"""What NCCL's RAS answers say: two compared, whose they are, who is behind, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from sgmon.model import Process, RasCommunicator, RasRank, RasReading


def compared(new: RasReading, old: RasReading | None) -> RasReading:
    """``new`` with "unequal and unchanged" set from the answer before it."""
    if old is None or old.answer != "ok" or new.answer != "ok":
        return new
    before = {comm.hash: comm for comm in old.communicators}
    stuck = any(
        comm.status == "MISMATCH" and comm.hash in before and _counts(comm) == _counts(before[comm.hash])
        for comm in new.communicators
    )
    return replace(new, unequal_unchanged=stuck)


def belongs(reading: RasReading, processes: Iterable[Process]) -> bool | None:
    """Whether the answer is about these processes (the port may be another job's); None: it names no pid."""
    theirs = {rank.pid for comm in reading.communicators for rank in comm.ranks if rank.pid is not None}
    if not theirs:
        return None
    ours = {number for process in processes for number in (process.pid, process.ns_pid)}
    return bool(theirs & ours)


def culprits(reading: RasReading) -> tuple[RasRank, ...]:
    """Ranks that the others wait for: missing ones, then those behind; none where the calls are crossed."""
    found: dict[tuple[int | None, int], RasRank] = {}
    for comm in reading.communicators:
        for rank in comm.ranks:
            if rank.missing or (rank.rank in comm.behind and not comm.crossed):
                found.setdefault((rank.pid, rank.rank if rank.pid is None else -1), rank)
    return tuple(sorted(found.values(), key=lambda rank: (not rank.missing, rank.rank)))


def words(reading: RasReading) -> tuple[str, ...]:
    """The reading in lines for people."""
    if reading.answer != "ok":
        return (reading.note or f"NCCL RAS at {reading.address}: {reading.answer}",)
    lines = [f"NCCL {reading.version}: {len(reading.communicators)} communicator(s)"]
    if reading.unanswered_connections:
        lines.append(
            f"{reading.unanswered_connections} of {reading.connections} connections were never answered: "
            "an NCCL process here is stopped"
        )
    for comm in reading.communicators:
        lines.extend(_comm_words(comm, reading.unequal_unchanged))
    return tuple(lines)


def _comm_words(comm: RasCommunicator, unchanged: bool | None) -> list[str]:
    name = f"communicator {comm.hash[-6:]} of {comm.size} ranks"
    if comm.status == "OK":
        return [f"{name}: all ranks at the same count"]
    lines = []
    for rank in comm.ranks:
        if rank.missing:
            state = "is considered dead" if rank.dead else "does not answer"
            lines.append(f"{name}: rank {rank.rank}{_place(rank)} {state}")
    if comm.crossed:
        lines.append(f"{name}: the ranks call different collectives (each is ahead in another)")
    elif comm.behind:
        late = ", ".join(f"rank {rank.rank}{_place(rank)}" for rank in comm.ranks if rank.rank in comm.behind)
        lines.append(f"{name}: {comm.operation} not entered by {late}")
    if comm.status == "MISMATCH":
        tail = {True: "unequal and unchanged", False: "unequal, but moving: normal at work"}
        lines.append(
            f"{name}: counts {tail.get(unchanged or False)}"
            if unchanged is not None
            else f"{name}: counts unequal; one answer alone proves nothing"
        )
    return lines or [f"{name}: {comm.status}"]


def _place(rank: RasRank) -> str:
    parts = [f"pid {rank.pid}"] if rank.pid is not None else []
    if rank.gpu is not None:
        parts.append(f"GPU {rank.gpu}")
    if rank.host:
        parts.append(rank.host)
    return f" ({', '.join(parts)})" if parts else ""


def _counts(comm: RasCommunicator) -> tuple[tuple[int, tuple[tuple[str, int], ...] | None], ...]:
    return tuple((rank.rank, rank.counts) for rank in comm.ranks)
