"""Everything the rules look at, drawn once from a snapshot."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict, replace

from sgmon.analyse.diagnosis import silence_limits, usual
from sgmon.analyse.family import family_of
from sgmon.analyse.phase import GUESS_S, is_guess, version_of
from sgmon.model import Process, Rank, RankState, Role, ServerArgs, Snapshot
from sgmon.servers.family import ServerFamily
from sgmon.servers.phases import PhaseTable
from sgmon.servers.registry import role_label

#: a look at the processes may come this much late; silence that nobody could break by a sign is none
UNSEEN_S = 5.0


class Context(Struct, frozen=True):
    """A snapshot with its ranks, phase and limits. blind: no counter of any rank could be read.

    recovered_silence_s: the longest silence that ended by itself, in this start or in nine of ten finished ones.
    """

    snapshot: Snapshot
    t: float
    args: ServerArgs
    phase: str
    ranks: tuple[Rank, ...]
    launcher: Process | None
    blind: bool
    recovered_silence_s: float
    family: ServerFamily
    guessed: bool  # nothing proves the phase
    helpers_t: float  # newest sign of activity of the launcher and what is neither rank nor detokenizer

    @property
    def version(self) -> str:
        return version_of(self.snapshot)

    def label(self, role: Role) -> str:
        """What this server's family calls a role."""
        return role_label(self.snapshot.family, role)

    @property
    def phases(self) -> PhaseTable:
        """The phases of its family."""
        return self.family.phases

    @property
    def phase_words(self) -> str:
        """ "weight load"; "unknown phase" where it has been a mere guess for long."""
        return "unknown phase" if self.guessed_long else self.phases.words(self.phase)

    @property
    def guessed_long(self) -> bool:
        """Nothing proves the phase, and it has been watched for so long that stacks could have."""
        return self.guessed and self.t - (self.snapshot.server_seen_t or 0.0) >= GUESS_S

    @property
    def in_phase(self) -> str:
        """ "in the weight load", "while importing"."""
        return self.during(self.phase)

    @property
    def stage(self) -> str:
        """ "in the weight load", "after it was ready"."""
        return "after it was ready" if self.has_been_ready else self.in_phase

    def during(self, phase: str) -> str:
        """The same of a phase; "in an unknown phase" where it is a mere guess."""
        return "in an unknown phase" if self.guessed or not phase else self.phases.during(phase)

    def passed(self, name: str) -> dict[str, float]:
        """rank -> when it first passed this milestone, where that is known."""
        found: dict[str, float] = {}
        for milestone in self.snapshot.log.milestones:
            t = self.snapshot.passed_t(milestone) if milestone.name == name else None
            if t is not None:
                found.setdefault(milestone.rank, t)
        return found

    def first_passed(self, *names: str) -> float | None:
        """When the first of these milestones that is there was passed by anybody; None: none was."""
        for name in names:
            times = self.passed(name)
            if times:
                return min(times.values())
        return None

    @property
    def was_ready(self) -> bool:
        """It said so itself: by its ready line, or, on a node of rank above 0, by its dummy health server."""
        log = self.snapshot.log
        return log.ready_line is not None or (self.args.node_rank > 0 and log.dummy_health_line is not None)

    @property
    def has_been_ready(self) -> bool:
        """It said so itself, or was found to be ready (where its log is not read)."""
        return self.was_ready or self.snapshot.has_been_ready

    @property
    def log_activity_t(self) -> float:
        """When the log last grew, our own probes' lines left out; 0 when it never did."""
        return self.snapshot.log.last_activity_t or 0.0

    @property
    def activity_t(self) -> float:
        """The newest sign of activity of any rank, or of the log."""
        times = [self.log_activity_t, self.snapshot.server_seen_t or 0.0, self.helpers_t]
        times += [rank.activity_t for rank in self.ranks]
        return max(times)

    @property
    def non_cpu_activity_t(self) -> float:
        """The same, CPU time left out."""
        times = [self.log_activity_t, self.snapshot.server_seen_t or 0.0, self.files_t]
        times += [rank.non_cpu_t for rank in self.ranks]
        return max(times)

    @property
    def files_t(self) -> float:
        """When a watched folder last grew; 0 when none did."""
        marks = (m.t for c in self.snapshot.clocks if c.gone_t is None for m in c.marks if m.signal == "files")
        return max(marks, default=0.0)

    @property
    def quiet_s(self) -> float:
        """Seconds without a sign of activity, as far as they were watched."""
        return max(0.0, self.watched_t - self.activity_t)

    @property
    def quiet_but_cpu_s(self) -> float:
        """The same, CPU time left out."""
        return max(0.0, self.watched_t - self.non_cpu_activity_t)

    @property
    def read_t(self) -> float | None:
        """When the processes were last read, at the end of that look; None: not yet."""
        probe = self.snapshot.probe("procs")
        return None if probe is None else probe.last_ok_t

    @property
    def asked_t(self) -> float | None:
        """When the port was last looked at; None: not yet."""
        probe = self.snapshot.probe("port")
        return None if probe is None else probe.last_ok_t

    @property
    def watched_t(self) -> float:
        """Until when silence counts: the last look at the processes and a little more."""
        return min(self.t, looked_t(self.snapshot) + UNSEEN_S)

    def limits(self, *, certain: bool = False) -> silence_limits.Limits:
        return silence_limits.limits(
            self.phases.of(self.phase),
            blind=self.blind,
            recovered_silence_s=self.recovered_silence_s,
            certain=certain,
        )


def looked_t(snapshot: Snapshot) -> float:
    """When the last look at the processes began: what it shows may be as old as that. Now, where it is not known."""
    probe = snapshot.probe("procs")
    return probe.last_ok_t - (probe.took_s or 0.0) if probe is not None and probe.last_ok_t else snapshot.t


def context_of(snapshot: Snapshot) -> Context:
    """Look at the snapshot once; all rules share the result."""
    ranks = tuple(rank for rank in snapshot.ranks if rank.state is not RankState.GONE)
    launcher = next((p for p in snapshot.procs.processes if p.alive and p.role == Role.LAUNCHER), None)
    recovered = [v.clock.longest_quiet_s for v in ranks if v.clock is not None]
    server = snapshot.server
    family = family_of(snapshot)
    args = merged_args(server.args if server is not None else ServerArgs(), snapshot.log.args, family.default_port)
    return Context(
        snapshot=snapshot,
        t=snapshot.t,
        args=args,
        phase=snapshot.phase,
        ranks=ranks,
        launcher=launcher,
        blind=not any(_readable(v) for v in ranks),
        recovered_silence_s=max(min(recovered, default=0.0), usual.quiet_s(snapshot) or 0.0),
        family=family,
        guessed=is_guess(snapshot),
        helpers_t=_helpers_t(snapshot, {v.pid for v in ranks}),
    )


#: they take part in a start: the launcher loads the tokenizer, a controller imports before its ranks get their work
_HELPERS = frozenset(
    {
        Role.LAUNCHER,
        Role.CONTROLLER,
        Role.ENGINE,
        Role.API_SERVER,
        Role.TOKENIZER,
        Role.WEIGHT_CACHE,
        Role.IMPORTING,
    }
)


def _helpers_t(snapshot: Snapshot, ranks: set[int]) -> float:
    marks = (
        clock.marks[0].t
        for clock in snapshot.clocks
        if clock.role in _HELPERS and clock.pid not in ranks and clock.gone_t is None and clock.marks
    )
    return max(marks, default=0.0)


def merged_args(given: ServerArgs, logged: ServerArgs | None, default_port: int) -> ServerArgs:
    """The command line, with what the log's server_args line adds to it (a config file, resolved defaults).

    A value at its default says nothing: the log's line may be cut, the command line may be retitled.
    """
    if logged is None:
        return given
    default = ServerArgs(port=default_port)
    values = asdict(logged)
    values["known"] = given.known or logged.known
    return replace(given, **{name: value for name, value in values.items() if value != getattr(default, name)})


def _readable(rank: Rank) -> bool:
    """CPU time and memory are world-readable; with them alone a quiet rank can be told from a busy one."""
    return rank.process.cpu_s is not None
