"""Which rank writes a line of one start, and what its lines tell of how many there are."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.prefix import Origin, origin
from sgmon.analyse.log.ranks import Milestones
from sgmon.analyse.log.records import Record
from sgmon.analyse.log.writers import RankNames, Writers
from sgmon.model.server import ServerArgs
from sgmon.servers.family import LogRules


class RunRanks(Struct):
    """Accumulates. milestones: the start's own. writers: of a family whose lines begin with their names."""

    log: LogRules
    milestones: Milestones
    writers: Writers | None
    names: RankNames = field(default_factory=RankNames)

    def copy(self, milestones: Milestones) -> RunRanks:
        """milestones: the copy's own."""
        writers = None if self.writers is None else self.writers.copy()
        return replace(self, milestones=milestones, writers=writers, names=self.names.copy())

    def begun(self, previous: str) -> None:
        """What stands before, in the same line or the one above: a name alone tells whose bar follows."""
        if self.writers is None or " pid=" not in previous:
            return
        record = self.log.record.match(previous)
        if record is None or previous[record.end() :].strip():
            return
        where = origin(previous, self.log)
        if where.pid:
            self._rename(self.writers.name(where))
            self.writers.owner = where.rank

    def name(self, record: Record) -> str:
        """Give a line that begins with a name and a pid its rank; the pid, whose traceback it is part of, else ""."""
        where, writers = record.where, self.writers
        if writers is None or not where.body or not (where.pid or where.stamp or where.t is not None):
            return ""
        self._rename(writers.name(where))
        if not where.stamp and where.source == "own":
            where.source = ""  # printed, not logged: no more than an envelope
        if where.pid and (record.bars or not record.body.strip()):
            writers.owner = where.rank
        return where.pid

    def told(self, groups: dict[str, str], where: Origin, rank: str, args: ServerArgs | None) -> str:
        """The rank of a line with these numbers, which tell how many there are, and which one its writer is."""
        if self.writers is None:
            return rank
        if groups.get("servers", "").isdigit():
            self.milestones.servers = max(1, int(groups["servers"]))
            self.milestones.shared = self.milestones.servers > 1
        if groups.get("rank", "").isdigit() and groups.get("world", "").isdigit():
            self._rename(self.writers.told(where, int(groups["rank"]), int(groups["world"]), args))
            return where.rank
        return rank

    def _rename(self, renamed: tuple[str, str] | None) -> None:
        """What the first of these names said was said by the rank of the second. None: no name has changed."""
        if renamed is None:
            return
        old, new = renamed
        self.names.known.discard(old)
        if self.names.admitted(new):
            self.milestones.rename(old, new)
