"""One rank as the rules see it: its process, clock, GPU, log and stack side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sgmon.analyse.diagnosis import thresholds
from sgmon.analyse.diagnosis.phase import after, order, phases_of_stacks, version_of
from sgmon.analyse.diagnosis.rank_progress import Place, places
from sgmon.analyse.diagnosis.stack_words import StackWait, stack_wait
from sgmon.analyse.diagnosis.waits import PEER_KINDS, Wait, download_of, wait_of
from sgmon.model import ActivityClock, Gpu, Mark, Process, RankProgress, Snapshot, StackDump
from sgmon.units import percent, rate

#: a mark this young means "now": readings come once a second, busy machines skip some
FRESH_S = 6.0
#: dumps older than the last sign of life say nothing about now; of a rank that has used CPU since, those older than
#: this neither
STACK_FRESH_S = 300.0
#: phases whose work is reading
_READING = frozenset({"launch", "spawn", "weights", "draft_weights"})


@dataclass(frozen=True, slots=True)
class RankView:
    """A subject of judgement: a scheduler, an importing child, or, before there are any, the launcher."""

    rank: str
    process: Process
    clock: ActivityClock | None
    gpu: Gpu | None
    progress: RankProgress | None
    dumps: tuple[StackDump, ...]
    phase: str
    wait: Wait
    t: float
    place: Place | None = None
    done: bool = False  # its own start is over while other ranks are behind: its idle loop burns a core

    @property
    def name(self) -> str:
        if self.process.role == "launcher":
            return "the launcher"
        return self.rank or ("the scheduler" if self.process.role == "scheduler" else "the worker process")

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stopped(self) -> bool:
        return self.process.state == "T" or self.process.frozen

    @property
    def waits_for_peer(self) -> bool:
        return self.wait.kind in PEER_KINDS

    @property
    def importing(self) -> bool:
        return self.process.role == "importing"

    @property
    def strong_mark(self) -> Mark | None:
        """Newest sign of life other than CPU time."""
        if self.clock is None:
            return None
        return next((m for m in self.clock.marks if m.signal != "cpu"), None)

    @property
    def cpu_mark(self) -> Mark | None:
        if self.clock is None:
            return None
        return next((m for m in self.clock.marks if m.signal == "cpu"), None)

    @property
    def cpu_counts(self) -> bool:
        """CPU time is work unless it spins: in NCCL by its GPU, in a collective or its event loop by its stack."""
        return not self.waits_for_peer and self.wait.kind != "idle" and not self.done

    @property
    def life_t(self) -> float:
        """When this rank last gave a sign of life."""
        first = self.clock.first_t if self.clock is not None else None
        times = [first if first is not None else 0.0]
        if self.strong_mark is not None:
            times.append(self.strong_mark.t)
        if self.cpu_mark is not None and self.cpu_counts:
            times.append(self.cpu_mark.t)
        return max(times)

    @property
    def quiet_s(self) -> float:
        return max(0.0, self.t - self.life_t)

    @property
    def strong_quiet_s(self) -> float:
        mark = self.strong_mark
        first = self.clock.first_t if self.clock is not None else None
        return max(0.0, self.t - max(mark.t if mark is not None else 0.0, first or 0.0))

    @property
    def moves(self) -> bool:
        return self.quiet_s <= FRESH_S

    @property
    def stack(self) -> StackWait | None:
        return stack_wait(self.dumps)

    def action(self) -> tuple[str, str]:
        """(signal, words): what it does now, from the fresh sign of life that tells most."""
        if self.clock is None:
            return "proc", "cannot be seen"
        if self.stopped:
            return "proc", "is stopped"
        fresh = {m.signal: m for m in self.clock.marks if self.t - m.t <= FRESH_S}
        if "compiler" in fresh:
            return "compiler", f"compiles ({fresh['compiler'].text})"
        if self.wait.kind in ("lock", "baton"):
            return self.wait.signal, self.wait.text
        if self.importing and fresh:
            cpu = self.clock.cpu_percent
            return "cpu", "imports Python modules" + (f" ({percent(cpu)} CPU)" if cpu is not None else "")
        speed = self.clock.read_rate if "bytes" in fresh else None
        if speed and self.download:
            return "bytes", f"downloads {self.download} at {rate(speed)}"
        if speed and self.phase in _READING:
            return "bytes", f"reads {rate(speed)}"
        if "bar" in fresh:
            return "bar", f"moves ({fresh['bar'].text})"
        if "cpu" in fresh and self.cpu_counts:
            return "cpu", f"computes ({fresh['cpu'].text})"
        for signal in ("gpu_memory", "memory", "network", "power", "log", "title"):
            if signal in fresh:
                return signal, f"moves ({fresh[signal].text})"
        if speed:
            return "bytes", f"reads {rate(speed)}"
        return (self.wait.signal, self.wait.text) if self.wait.text else ("proc", "does nothing")

    def doing(self) -> str:
        """The words of ``action``."""
        return self.action()[1]

    @property
    def download(self) -> str:
        """The file of the model hub that it holds open and that is not complete yet; "" without one."""
        return download_of(self.process)

    def where(self) -> str:
        """State, kernel wait and CPU as one short fact."""
        parts = [f"state {self.process.state}"]
        if self.process.wchan and self.process.wchan != "0":
            parts.append(self.process.wchan)
        if self.clock is not None and self.clock.demand_percent is not None:
            parts.append(f"CPU {percent(self.clock.demand_percent)}")
        return ", ".join(parts)


def rank_views(snapshot: Snapshot, phase: str) -> tuple[RankView, ...]:
    """The subjects: schedulers and importing ranks; before there are any, whoever is starting."""
    alive = [p for p in snapshot.procs.processes if not p.gone and p.state not in ("Z", "X")]
    chosen = [p for p in alive if p.role == "scheduler" or _will_be_rank(p)]
    if not chosen:
        chosen = [p for p in alive if p.role in ("importing", "dp_controller")]
    if not chosen and not any(p.role == "resource_tracker" for p in alive):
        chosen = [p for p in alive if p.role == "launcher"]  # once it has children it only waits: never the culprit
    clocks = {c.pid: c for c in snapshot.clocks if c.gone_t is None}
    progress = {p.rank: p for p in snapshot.log.ranks}
    stacked = phases_of_stacks(snapshot)
    come = places(snapshot.log, tuple(p.rank for p in chosen if p.role == "scheduler"), version_of(snapshot))
    furthest = max(come.values(), default=None)
    views = []
    for process in chosen:
        place = come.get(process.rank)
        behind = place is not None and place != furthest
        own = stacked.get(process.pid, phase)
        if behind and process.rank in progress:
            own = _own_phase(progress[process.rank])
        own = "spawn" if process.role == "importing" else own
        views.append(_view(snapshot, process, clocks.get(process.pid), progress.get(process.rank), own, place))
    over = order("scheduler_ready")
    if any(order(v.phase) < over for v in views):
        views = [replace(v, done=order(v.phase) >= over) for v in views]
    return tuple(views)


def _own_phase(progress: RankProgress) -> str:
    """Where a rank that is behind stands: in the phase of its last line, or, when that line ended it, in the next."""
    return after(progress.phase) if progress.milestone.endswith("_end") else progress.phase


def _will_be_rank(process: Process) -> bool:
    if process.role != "importing":
        return False
    return bool(process.rank or process.rank_inferred or process.becomes == "scheduler")


def _view(
    snapshot: Snapshot,
    process: Process,
    clock: ActivityClock | None,
    progress: RankProgress | None,
    phase: str,
    place: Place | None,
) -> RankView:
    marks = clock.marks if clock is not None else ()
    strong_t = max((m.t for m in marks if m.signal != "cpu"), default=0.0)
    any_t = max((m.t for m in marks), default=0.0)
    dumps = tuple(
        d
        for d in snapshot.stacks
        if d.pid == process.pid and d.t >= strong_t and (d.t >= any_t or snapshot.t - d.t <= STACK_FRESH_S)
    )[-3:]
    return RankView(
        rank=process.rank,
        process=process,
        clock=clock,
        gpu=_gpu(snapshot, process),
        progress=progress if process.role == "scheduler" else None,
        dumps=dumps,
        phase=phase,
        wait=wait_of(process, clock, dumps),
        t=snapshot.t,
        place=place,
    )


def _gpu(snapshot: Snapshot, process: Process) -> Gpu | None:
    for gpu in snapshot.gpu.gpus:
        if any(holder.pid == process.pid for holder in gpu.processes):
            return gpu
    if not process.rank:
        return None
    return next((g for g in snapshot.gpu.gpus if process.rank in g.ranks), None)


def idle_gpu(view: RankView) -> bool:
    """Its GPU does nothing at all, by ten seconds of samples or by the one there is."""
    clock = view.clock
    if clock is not None and clock.gpu_util_max is not None:
        return clock.gpu_util_max <= thresholds.CPU_PERCENT
    return view.gpu is not None and view.gpu.util_percent == 0
