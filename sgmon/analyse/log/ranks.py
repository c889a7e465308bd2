"""Milestones per rank and for the whole log: the last one, those of the draft model, the phase that is open.

Nothing depends on the order of phases: a milestone counts because it came later, except the weak ones (lines
that come again and again, or that only say that a library works).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.catalogue import Rule
from sgmon.model.log import Milestone, RankProgress
from sgmon.patterns import regex
from sgmon.servers.phases import PhaseTable

#: Milestones kept; the bars are one each, so a real start has some hundred.
LIMIT = 4_000
#: The same of a weak one, which comes by the thousand.
WEAK_LIMIT = 256

#: Milestones before the ranks talk to each other; a weak one may follow these.
_EARLY = ("launch", "args", "process_spawn", "dp_launch", "tokenizer_init", "dist_init_begin")
_REACHED = ("load_end", "kv_alloc", "memory_pool_end", "graph_begin", "graph_end", "graph_progress")
#: Ranks of releases before 0.4: what they do next has another order.
_BARE = regex(r"Rank \d|gpu")
_TP0 = regex(r"\bTP0\b")


class Track(Struct):
    """One rank: its last milestone, and what it has been through."""

    last: Milestone | None = None
    weak: bool = True
    seen: dict[str, int] = field(default_factory=dict)
    drafting: bool = False
    inferred: bool = True
    phase: str = ""  # under way after the last milestone


class Milestones(Struct):
    """All milestones of one run. phases: of its family."""

    phases: PhaseTable
    found: list[Milestone] = field(default_factory=list)
    tracks: dict[str, Track] = field(default_factory=dict)
    last: Milestone | None = None
    last_weak: bool = True
    fallback: Milestone | None = None
    phase: str = ""
    drafting: bool = False
    ready_line: int | None = None
    ready_by_work: bool = False
    http_up_line: int | None = None
    dummy_line: int | None = None
    stop_line: int | None = None
    gate_open: bool | None = None
    moves: int = 0  # milestones and bars taken
    eager: bool = False  # no graphs are captured
    servers: int = 1  # that share the port and have not printed the ready line, which each prints
    shared: bool = False  # several share it
    seen: dict[str, int] = field(default_factory=dict)

    def has_enough(self, rule: Rule) -> bool:
        """Whether no more milestones like this one are kept."""
        return len(self.found) >= LIMIT or (rule.weak and self.seen.get(rule.name, 0) >= WEAK_LIMIT)

    def copy(self) -> Milestones:
        tracks = {rank: replace(track, seen=dict(track.seen)) for rank, track in self.tracks.items()}
        return replace(self, found=list(self.found), tracks=tracks, seen=dict(self.seen))

    def add(
        self,
        rule: Rule,
        number: int,
        rank: str,
        t: float | None,
        seen_t: float | None,
        fields: tuple[tuple[str, str], ...],
        inferred: bool,
    ) -> Milestone | None:
        """Take a matching rule; None if it does not count here."""
        if rule.name == "shutdown":
            self.stop_line = self.stop_line or number
            return None
        if self.is_over:
            return None  # serving: a capture or a batch is no start any more
        if rule.once and rule.name in self.seen:
            return None
        if rule.name == "ready" and self.shared and rule.weak:
            return None  # one of them serves
        if rule.name == "ready" and self.servers > 1:
            self.servers -= 1
            rule = replace(rule, name="http_up", event="progress", phase="http")
        if self.ignores(rule) or (rule.early_only and rule.name != "warmup_request" and self._past(rank)):
            return None
        track = self.tracks.setdefault(rank, Track())
        track.inferred = track.inferred and inferred
        name, phase = self._named(rule, rank, track, bool(dict(fields).get("draft")))
        made = Milestone(name, rule.event, phase, number, rank, t, seen_t, fields)
        if not self.has_enough(rule):
            self._keep(made)
        self.moves += 1
        self._count(name, track)
        if rule.rank_only:
            self.fallback = made
        self._advance_rank(made, rule, track, rank)
        if not rule.rank_only:
            self._advance(made, rule)
        self._special(made, rule)
        return made

    def ignores(self, rule: Rule) -> bool:
        """Whether this is a batch or request that is no warm-up: in the middle of a log they come by the million."""
        if rule.name == "ready":  # an early one is for a text that begins while serving: no start is in it
            return self.ready_line is not None or (rule.early_only and not self.seen.keys() <= {"warmup_request"})
        if rule.name != "warmup_request":
            return False
        if self.http_up_line is None and self.seen and "http_start" not in self.seen:
            return True
        return rule.early_only and "warmup_request" in self.seen

    def bar(self, made: Milestone, rank: str | None) -> None:
        """A bar moved: it is the last milestone of the log, and of a rank if the rank is known."""
        if self.is_over:
            return
        if self.found and self.found[-1].name == made.name and self.found[-1].line == made.line:
            self.found[-1] = made
            self.moves += 1
        else:
            self._keep(made)
        self.last, self.last_weak = made, False
        self.moves += 1
        if made.phase:
            self.phase = made.phase
        if rank is not None:
            track = self.tracks.setdefault(rank, Track())
            track.inferred = False
            track.last, track.weak = made, False
            track.phase = made.phase or track.phase
            self._count(made.name, track)

    def bar_rank(self, name: str) -> str | None:
        """Who draws this bar, if the log can tell: the shard bar is global rank 0's alone, a graph bar any TP0's."""
        known = [rank for rank, track in self.tracks.items() if rank and not track.inferred]
        if not known:
            return ""
        if not name.removeprefix("draft_").startswith("weights"):
            return None
        zero = [rank for rank in known if _TP0.search(rank)]
        return zero[0] if len(zero) == 1 else None

    @property
    def is_over(self) -> bool:
        """Whether the start is over: it serves, or its dummy health server does."""
        return self.ready_line is not None or self.dummy_line is not None

    @property
    def furthest(self) -> str:
        """The latest phase of any rank; the last line may be that of a replica that is behind."""
        return max((self.phase, *(track.phase for track in self.tracks.values())), key=self.phases.order)

    def progress(self, also: Iterable[str] = ()) -> tuple[RankProgress, ...]:
        """The last milestone of each rank; rank "" only when there is no other. ``also``: ranks known otherwise."""
        return tuple(made for rank, _ in self._known(also) if (made := self.of_rank(rank)) is not None)

    def of_rank(self, rank: str, name: str | None = None) -> RankProgress | None:
        """The last milestone of one rank, called ``name``."""
        track = self.tracks.get(rank)
        last = track.last if track is not None else None
        if last is None:
            return None
        name = rank if name is None else name
        return RankProgress(name, last.name, last.line, last.phase, last.t, last.seen_t, last.event)

    def rename(self, old: str, new: str) -> None:
        """What was said by ``old`` was said by the rank ``new``."""
        said = self.tracks.pop(old, None)
        track = self.tracks.setdefault(new, said or Track())
        if said is not None and track is not said and said.last is not None:
            if track.last is None or track.last.line < said.last.line:
                track.last, track.weak, track.phase = said.last, said.weak, said.phase or track.phase
            for name, count in said.seen.items():
                track.seen[name] = track.seen.get(name, 0) + count
        self.found = [replace(made, rank=new) if made.rank == old else made for made in self.found]

    def _known(self, also: Iterable[str]) -> list[tuple[str, Track]]:
        real = [rank for rank, track in self.tracks.items() if rank and not track.inferred] + list(also)
        numbers = [int(m[1]) for m in (re.search(r"TP(\d+)$", rank) for rank in real) if m]
        drop_inferred = bool(numbers) and min(numbers) >= 8  # another node: a GPU index is not the rank
        found = [
            (rank, track) for rank, track in self.tracks.items() if rank and not (track.inferred and drop_inferred)
        ]
        if not found and "" in self.tracks:
            return [("", self.tracks[""])]
        return found

    def _named(self, rule: Rule, rank: str, track: Track, draft: bool) -> tuple[str, str]:
        name, phase = rule.name, rule.phase
        if name == "draft_load_begin":
            track.drafting = self.drafting = True
        if rule.weak or not self.phases.repeated(phase):
            return name, phase
        if name in ("dist_init_begin", "load_begin") or (name == "dist_init_end" and rule.event == "info"):
            if self._second(name, rule, rank, track):
                track.drafting = self.drafting = True
            drafting = track.drafting
        elif name in ("load_end", "memory_pool_end", "kv_alloc"):
            drafting = draft or self._second_end(name, rule, track)
        elif phase == "graphs":
            drafting = False  # draft graphs have their own words
        else:
            drafting = track.drafting
        return ("draft_" + name, "draft_" + phase) if drafting else (name, phase)

    def _second(self, name: str, rule: Rule, rank: str, track: Track) -> bool:
        if track.drafting or any(reached in track.seen for reached in _REACHED):
            return True
        many = not rank and any(other for other in self.tracks if other)
        begins = rule.event == "begin" and not rule.again
        return not many and begins and track.seen.get(name, 0) > 0 and bool(rank)

    @staticmethod
    def _second_end(name: str, rule: Rule, track: Track) -> bool:
        if not track.drafting or rule.post_capture:
            return False
        if name == "load_end":
            return track.seen.get("load_end", 0) > 0 or "draft_load_begin" in track.seen
        # target pool first, then the draft's (all versions); graphs done means the target's pool is done
        return "memory_pool_end" in track.seen or "graph_end" in track.seen

    def _past(self, rank: str) -> bool:
        track = self.tracks.get(rank)
        seen = track.seen if track else {}
        return "dist_init_end" in seen or "load_begin" in seen or "dist_init_end" in self.seen

    def _advance_rank(self, made: Milestone, rule: Rule, track: Track, rank: str) -> None:
        weak = rule.weak or rule.weak_rank
        if rule.name in ("ready", "http_up", "http_start", "args", "launch", "warmup_failed") and rank:
            return
        if rule.name == "launch" and track.last is not None:  # of a process that it has started
            return
        if weak and track.last is not None and not track.weak and track.last.name not in _EARLY:
            return
        shown = made
        if rule.rank_name:
            shown = Milestone(
                rule.rank_name,
                made.event,
                made.phase,
                made.line,
                made.rank,
                made.t,
                made.seen_t,
                made.fields,
            )
        track.last, track.weak = shown, weak
        track.phase = self._phase_after(made, rule) or track.phase

    def _advance(self, made: Milestone, rule: Rule) -> None:
        if rule.weak and self.last is not None:
            launch_late = rule.phase in ("launch", "spawn")
            if launch_late and self.last.name not in ("launch", "args"):
                return
            if not launch_late and not self.last_weak and self.last.name not in _EARLY:
                return
        if rule.name == "launch" and self.last is not None:
            return
        self.last, self.last_weak = made, rule.weak
        self.phase = self._phase_after(made, rule) or self.phase

    def _phase_after(self, made: Milestone, rule: Rule) -> str:
        if rule.next == "graphs" and self.eager:
            return self.phases.after(rule.next)
        if rule.next:
            draft = made.name.startswith("draft_") and self.phases.repeated(rule.next)
            return "draft_" + rule.next if draft else rule.next
        if rule.event == "end" and made.phase and not _BARE.match(made.rank):
            return self.phases.after(made.phase)
        return made.phase or rule.implies

    def _special(self, made: Milestone, rule: Rule) -> None:
        if rule.name == "http_up":
            self.http_up_line = self.http_up_line or made.line
        elif rule.name == "ready":
            if rule.event == "info":
                self.dummy_line = made.line
            else:
                self.ready_line, self.ready_by_work = made.line, rule.weak
            self.phase = "serving"
        elif rule.gate and self.gate_open is not True:
            self.gate_open = rule.gate == "open"

    def _count(self, name: str, track: Track) -> None:
        self.seen[name] = self.seen.get(name, 0) + 1
        track.seen[name] = track.seen.get(name, 0) + 1

    def _keep(self, made: Milestone) -> None:
        if len(self.found) < LIMIT:
            self.found.append(made)
