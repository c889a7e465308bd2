"""Everything the rules look at, drawn once from a snapshot."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.diagnosis.phase import phase_of_snapshot, version_of
from sgmon.analyse.diagnosis.ranks import RankView, rank_views
from sgmon.model import ActivityClock, Process, ServerArgs, Snapshot


@dataclass(frozen=True, slots=True)
class Scene:
    """A snapshot with its ranks, phase and limits. blind: no counter of any rank could be read.

    healed_s: the longest silence that ended by itself, in this start or in nine of ten finished ones.
    """

    snapshot: Snapshot
    t: float
    args: ServerArgs
    phase: str
    ranks: tuple[RankView, ...]
    launcher: Process | None
    launcher_clock: ActivityClock | None
    blind: bool
    healed_s: float
    helpers_t: float  # newest sign of life of the launcher and what is neither rank nor detokenizer
    phase_source: str = "log"  # log | stack | proc

    @property
    def version(self) -> str:
        return version_of(self.snapshot)

    @property
    def was_ready(self) -> bool:
        """It said so itself: by its ready line, or, on a node of rank above 0, by its dummy health server."""
        log = self.snapshot.log
        return log.ready_line is not None or (self.args.node_rank > 0 and log.dummy_health_line is not None)

    @property
    def log_life_t(self) -> float:
        """When the log last grew, our own probes' lines left out; 0 when it never did."""
        return self.snapshot.log.last_activity_t or 0.0

    @property
    def life_t(self) -> float:
        """The newest sign of life of any rank, or of the log."""
        times = [self.log_life_t, self.snapshot.server_seen_t or 0.0, self.helpers_t]
        times += [view.life_t for view in self.ranks]
        return max(times)

    @property
    def strong_life_t(self) -> float:
        """The same, CPU time left out."""
        times = [self.log_life_t, self.snapshot.server_seen_t or 0.0, self.files_t]
        times += [self.t - view.strong_quiet_s for view in self.ranks]
        return max(times)

    @property
    def files_t(self) -> float:
        """When a watched folder last grew; 0 when none did."""
        marks = (m.t for c in self.snapshot.clocks if c.gone_t is None for m in c.marks if m.signal == "files")
        return max(marks, default=0.0)

    @property
    def quiet_s(self) -> float:
        return max(0.0, self.t - self.life_t)

    def limits(self, *, certain: bool = False) -> silence_limits.Limits:
        return silence_limits.limits(self.phase, blind=self.blind, healed_s=self.healed_s, certain=certain)


def scene_of(snapshot: Snapshot) -> Scene:
    """Look at the snapshot once; all rules share the result."""
    phase, source = phase_of_snapshot(snapshot)
    ranks = rank_views(snapshot, phase)
    alive = [p for p in snapshot.procs.processes if not p.gone and p.state not in ("Z", "X")]
    launcher = next((p for p in alive if p.role == "launcher"), None)
    clock = next((c for c in snapshot.clocks if launcher is not None and c.pid == launcher.pid), None)
    healed = [v.clock.longest_quiet_s for v in ranks if v.clock is not None]
    server = snapshot.server
    args = merged_args(server.args if server is not None else ServerArgs(), snapshot.log.args)
    return Scene(
        snapshot=snapshot,
        t=snapshot.t,
        args=args,
        phase=phase,
        ranks=ranks,
        launcher=launcher,
        launcher_clock=clock,
        blind=not any(_readable(v) for v in ranks),
        healed_s=max(min(healed, default=0.0), usual.quiet_s(snapshot) or 0.0),
        helpers_t=_helpers_t(snapshot, {v.pid for v in ranks}),
        phase_source=source,
    )


#: they take part in a start: the launcher loads the tokenizer, a controller imports before its ranks get their work
_HELPERS = frozenset({"launcher", "dp_controller", "tokenizer", "weight_cache", "importing"})


def _helpers_t(snapshot: Snapshot, ranks: set[int]) -> float:
    marks = (
        clock.marks[0].t
        for clock in snapshot.clocks
        if clock.role in _HELPERS and clock.pid not in ranks and clock.gone_t is None and clock.marks
    )
    return max(marks, default=0.0)


def merged_args(given: ServerArgs, logged: ServerArgs | None) -> ServerArgs:
    """The command line, with what the log's server_args line adds to it (a config file, resolved defaults).

    A value at its default says nothing: the log's line may be cut, the command line may be retitled.
    """
    if logged is None:
        return given
    default = ServerArgs()
    told = {f.name: getattr(logged, f.name) for f in fields(ServerArgs)}
    return replace(given, **{name: value for name, value in told.items() if value != getattr(default, name)})


def _readable(view: RankView) -> bool:
    """CPU time and memory are world-readable; with them alone a quiet rank can be told from a busy one."""
    return view.process.cpu_s is not None
