"""Events in, snapshots out. Deterministic: nothing here looks at a clock or does I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sgmon.analyse.activity.tracker import ActivityTracker
from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.analyse.foreseen import Foreseen
from sgmon.analyse.gpu.rank_mapping import assign
from sgmon.analyse.next_snapshot import probe_status, with_note, with_verdict
from sgmon.analyse.port_owner import with_owners
from sgmon.analyse.ranks.make import Kept, with_ranks
from sgmon.analyse.series import with_series
from sgmon.analyse.stacks.requests import with_reading
from sgmon.analyse.stacks.rules import rules_of
from sgmon.model import (
    Baseline,
    Event,
    GpuReading,
    KernelReading,
    LogReading,
    LogState,
    PortReading,
    ProcsReading,
    RasReading,
    Server,
    ServerReading,
    Snapshot,
    StacksReading,
    StartReading,
    WatchDirReading,
)
from sgmon.model.preflight import Place, Preflight
from sgmon.servers import registry

if TYPE_CHECKING:
    from sgmon.analyse.log.fold import LogFold
    from sgmon.analyse.stacks.causes import Cause
    from sgmon.servers.family import LogRules

KEPT_LINES = 32  # of the kernel's log
#: kinds after which the verdict is drawn anew; log and GPU events are too many, the next tick is near
JUDGED = frozenset({"tick", "server", "procs", "port", "stacks", "ras", "preflight", "kernel"})
#: kinds whose readings say all that is known: the newest counts
_READ = ("procs", "gpu", "port")
LATEST = frozenset({"server", "procs", "gpu", "port", "start", "watchdir", "preflight"})


class Store:
    """Holds the snapshot and what is needed to make the next one. ``step`` is the only way in."""

    def __init__(self, epoch: float, *, replay: str = "", user_causes: Sequence[Cause] = ()) -> None:
        self.snapshot = Snapshot(epoch=epoch, replay=replay)
        self._fold: LogFold | None = None  # made with the first text of a log
        self._log_rules: LogRules | None = None  # of the server's family
        self._activity = ActivityTracker()
        self._kept = Kept()
        self._foreseen = Foreseen()
        self._user_causes = user_causes
        self._matched: object = None
        self._newest: dict[str, float] = {}  # kind -> time of its newest reading
        self._judged_t: float | None = None  # of the verdict, where nothing was folded in since

    def step(self, event: Event) -> Snapshot:
        """Fold one event in. An event out of order keeps the newer time (probes run side by side); a reading that is
        older than one of its kind says nothing new."""
        old = self.snapshot
        if event.kind in LATEST and event.reading is not None:
            if event.t < self._newest.get(event.kind, event.t):
                return old
            self._newest[event.kind] = event.t
        new = replace(old, t=max(old.t, event.t))
        reading = event.reading
        if isinstance(reading, ServerReading):
            new = self._server(new, reading)
        elif isinstance(reading, ProcsReading):
            new = with_owners(_with_gpu_ranks(replace(new, procs=reading)))
        elif isinstance(reading, GpuReading):
            new = with_series(_with_gpu_ranks(replace(new, gpu=reading)), event.t)
        elif isinstance(reading, LogReading):
            new = self._with_log(new, reading, event.t)
        elif isinstance(reading, PortReading):
            new = with_owners(_with_port(new, reading, event.t))
        elif isinstance(reading, RasReading):
            new = replace(new, ras=reading)
        elif isinstance(reading, StacksReading):
            new = with_reading(new, reading)
        elif isinstance(reading, StartReading):
            new = replace(new, start=reading)
        elif isinstance(reading, Preflight):
            new = new if _tells_less(new.preflight, reading) else replace(new, preflight=reading)
        elif isinstance(reading, WatchDirReading):
            new = replace(new, watch_dirs=reading)
        elif isinstance(reading, KernelReading):
            before = new.kernel.lines if new.kernel is not None else ()
            new = replace(new, kernel=replace(reading, lines=(*before, *reading.lines)[-KEPT_LINES:]))
        elif isinstance(reading, Baseline):
            new = _with_baseline(new, reading)
        new = _with_old_parts(old, new)
        new = replace(new, probes=probe_status(new.probes, event))
        clocks = self._activity.observe(event, new)
        new = new if clocks == old.clocks else replace(new, clocks=clocks)
        if isinstance(reading, GpuReading):
            new = replace(new, gpu_loads=self._activity.gpu_loads())
        if _inputs_of_ranks(new) != _inputs_of_ranks(old):
            new = with_ranks(new, self._kept)
        new = self._foreseen.with_forecasts(old, new)
        if event.kind in JUDGED and not (event.kind == "tick" and new.t == self._judged_t):
            new = self._with_causes(new)
            new = with_verdict(new, diagnose(new))
        self._judged_t = new.t if event.kind in JUDGED else None
        self.snapshot = new
        return new

    def set_epoch(self, epoch: float) -> None:
        """The wall clock at watch second 0 is known better (of another machine)."""
        self.snapshot = replace(self.snapshot, epoch=epoch)
        if self._fold is not None:
            self._fold.set_epoch(epoch)

    def note(self, *, saved: tuple[str, ...] | None = None, replay: str | None = None) -> Snapshot:
        """What the engine knows beside the events: files it has written, where a replay is."""
        self.snapshot = with_note(self.snapshot, saved, replay)
        return self.snapshot

    def _server(self, new: Snapshot, reading: ServerReading) -> Snapshot:
        new = replace(
            new,
            candidates=reading.candidates,
            orphans=reading.orphans,
            looked_for=reading.looked_for,
            asked_port=reading.asked_port,
        )
        server = reading.server
        if server is None:
            return new  # the last server stays in view: its end is what people want to see
        if new.server is not None and _same(new.server, server):
            return replace(new, server=_keep_args(new.server, server))
        if not new.log.lines or new.server is not None:
            self._fold, self._log_rules = None, registry.get(server.family).log
        if new.server is not None:
            self._activity = ActivityTracker()
            new = Snapshot(
                t=new.t,
                epoch=new.epoch,
                candidates=new.candidates,
                orphans=new.orphans,
                looked_for=new.looked_for,
                asked_port=new.asked_port,
                restarts=new.restarts + 1,
                gpu=new.gpu,
                series=new.series,
                probes=new.probes,
                verdict=new.verdict,
                verdicts=new.verdicts,
                replay=new.replay,
                saved=new.saved,
            )
        return replace(new, server=server, server_seen_t=new.t)

    def _with_causes(self, new: Snapshot) -> Snapshot:
        """What the cause book says, looked up again only when what it reads has changed: stacks, error, NCCL."""
        if new.server is None or not (new.stacks or new.log.error or new.ras):
            return new
        ras = new.probe("ras")
        ras_t = None if ras is None else ras.last_ok_t
        seen = (new.stacks, new.log.error, new.ras, ras_t, new.verdict.state)
        if seen == self._matched:
            return new
        self._matched = seen
        from sgmon.analyse.stacks.causes import book_of, match, with_entries  # most starts never need the book
        from sgmon.analyse.stacks.conditions import Facts

        facts = Facts(
            dumps=new.stacks,
            processes=new.procs.processes,
            log=new.log,
            ras=new.ras,
            ras_t=ras_t,
            port=new.port,
            family=new.family,
        )
        book = with_entries(book_of(rules_of(new.server)), self._user_causes)
        return replace(new, causes=match(facts, book))

    def _with_log(self, new: Snapshot, reading: LogReading, t: float) -> Snapshot:
        if self._fold is None:
            from sgmon.analyse.log.fold import LogFold  # 10 ms, which the first picture of the ranks does without

            self._fold = LogFold(self._log_rules, new.epoch)
        self._fold.feed(reading, t)
        log = _with_old_milestones(new.log, self._fold.state())
        if log is new.log:
            return new
        new = replace(new, log=log)
        server = new.server
        if server is not None and log.args is not None and not server.args_known:
            server = replace(server, args=log.args, args_source="server_args line of the log")
            new = replace(new, server=server)
        return new


def _with_old_parts(old: Snapshot, new: Snapshot) -> Snapshot:
    """``new`` with the very objects of ``old`` for readings that say the same: who looks at a part asks whether it is
    another object."""
    same = {
        name: part
        for name, part in ((name, getattr(old, name)) for name in _READ)
        if part is not getattr(new, name) and part == getattr(new, name)
    }
    return replace(new, **same) if same else new


def _with_old_milestones(old: LogState, new: LogState) -> LogState:
    """``new`` with the very milestones of ``old`` while there are no others: what is made of them is kept. A serving
    log grows many times a second."""
    same = old.milestones is not new.milestones and old.milestones == new.milestones
    return replace(new, milestones=old.milestones) if same else new


def _inputs_of_ranks(snapshot: Snapshot) -> tuple[int, ...]:
    """What the ranks are made of, by identity: an unchanged part is the same object."""
    parts = (
        snapshot.server,
        snapshot.procs,
        snapshot.gpu,
        snapshot.log,
        snapshot.port,
        snapshot.stacks,
        snapshot.clocks,
    )
    return tuple(map(id, parts))


def _same(old: Server, new: Server) -> bool:
    return old.key == new.key


def _keep_args(old: Server, new: Server) -> Server:
    """What the log told of a retitled server stays known."""
    if not set(old.log_writers) <= set(new.log_writers) and old.log_path == new.log_path:
        new = replace(new, log_writers=tuple(sorted({*old.log_writers, *new.log_writers})))
    if old.args_known and not new.args_known:
        return replace(new, args=old.args, args_source=old.args_source)
    return old if old == new else new


def _with_gpu_ranks(new: Snapshot) -> Snapshot:
    if new.server is None or not new.gpu.gpus:
        return new
    gpus = assign(new.gpu.gpus, new.procs.processes, new.server)
    return new if gpus == new.gpu.gpus else replace(new, gpu=replace(new.gpu, gpus=gpus))


def _tells_less(old: Preflight | None, reading: Preflight) -> bool:
    """Whether a process that ends hides what could be read of the same start before."""
    if old is None or old.key != reading.key or old.model is None or reading.model is None:
        return False
    return reading.model.place is Place.HIDDEN and old.model.place is not Place.HIDDEN


def _with_baseline(new: Snapshot, reading: Baseline) -> Snapshot:
    """A baseline of no start is none: then there is no number anywhere."""
    if not reading.count:
        return replace(new, baseline=None, usual_s=())
    return replace(new, baseline=reading, usual_s=tuple((one.phase, one.p90_s) for one in reading.phases))


def _with_port(new: Snapshot, reading: PortReading, t: float) -> Snapshot:
    old = new.port
    changed = old is None or (old.answer, old.status, old.port) != (
        reading.answer,
        reading.status,
        reading.port,
    )
    return replace(new, port=reading, port_changed_t=t if changed else new.port_changed_t)
