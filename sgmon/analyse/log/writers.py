"""Who writes, in logs whose lines begin with the name and the pid of a process: which rank each pid is.

A worker has no number until its groups are made. Its lines count for "pid123" so long; a later name, or the line in
which it tells its number, says which rank that was.
"""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.prefix import Origin
from sgmon.model.log import MOST_RANKS
from sgmon.model.server import ServerArgs
from sgmon.servers.family import Heads


class RankNames(Struct):
    """The ranks that a log has named; no more than ``MOST_RANKS`` are told apart, whatever it says."""

    known: set[str] = field(default_factory=set)
    is_over: bool = False  # more were named

    def copy(self) -> RankNames:
        return RankNames(set(self.known), self.is_over)

    def admitted(self, rank: str) -> str:
        """``rank``; "" for one too many: what it says counts for the log as a whole."""
        if not rank or rank in self.known:
            return rank
        if len(self.known) >= MOST_RANKS:
            self.is_over = True
            return ""
        self.known.add(rank)
        return rank


class Writers(Struct):
    """Accumulates. ranks: pid -> rank; pid "" writes without a name. engines: ranks that name an engine, not a rank.

    owner: who wrote the last frame of a bar or the end of its line, None where no line told.
    """

    heads: Heads
    ranks: dict[str, str] = field(default_factory=dict)
    engines: set[str] = field(default_factory=set)
    workers: bool = False
    nameless_first: bool = False
    owner: str | None = None

    def copy(self) -> Writers:
        return replace(self, ranks=dict(self.ranks), engines=set(self.engines))

    def name(self, where: Origin) -> tuple[str, str] | None:
        """Give the record its rank; the old and the new name of a rank that is known from now on."""
        worker = self.heads.worker(where.name)
        self.workers = self.workers or worker
        self.nameless_first = self.nameless_first or where.name == self.heads.first
        known = self.ranks.get(where.pid)
        if known is None and len(self.ranks) >= MOST_RANKS:
            return None
        if where.rank and worker and not where.rank_inferred:
            self.ranks[where.pid] = where.rank
            return (known, where.rank) if known is not None and known != where.rank else None
        if where.rank and where.name and len(self.engines) < MOST_RANKS:
            self.engines.add(where.rank)
        if known is None and worker:
            known = self.ranks[where.pid] = f"pid{where.pid}"
        if known is not None:
            where.rank, where.rank_inferred = known, False
        return None

    def told(self, where: Origin, number: int, world: int, args: ServerArgs | None) -> tuple[str, str] | None:
        """The process tells its number in a group of ``world`` ranks: its rank, as ``name``."""
        old = where.rank
        new = self.heads.rank_of(number, world, old, args)
        if where.pid not in self.ranks and len(self.ranks) >= MOST_RANKS:
            return None
        self.ranks[where.pid] = where.rank = new
        return (old, new) if old != new and (old or not where.pid) else None

    def is_engine(self, rank: str) -> bool:
        """Whether this names an engine whose ranks have names of their own."""
        return self.workers and rank in self.engines and rank not in self.ranks.values()
