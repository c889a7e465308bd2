"""Evidence, next steps and missing signals in words: what all rules share."""

from __future__ import annotations

from sgmon.analyse import watched_dir
from sgmon.analyse.diagnosis.context import Scene
from sgmon.analyse.diagnosis.ranks import RankView
from sgmon.model import Evidence, Missing, NextStep
from sgmon.text import clean
from sgmon.units import age, duration

#: a dated line this much older than the silence that was watched tells of silence before the watch
DATED_S = 10.0
#: where the output of a server goes that writes no file (Server.log_kind)
_OUTPUT = {
    "pipe": "the server's output goes into a pipe",
    "pty": "the server's output goes to a terminal",
    "socket": "the server's output goes into a socket",
    "null": "the server's output goes to /dev/null",
    "none": "the server has no output open",
}
STEP_STACKS = NextStep("Take the stacks of all ranks, merged", "sgmon stacks")


def log_fact(scene: Scene) -> Evidence:
    """The last line, and for how long the log has been silent."""
    log = scene.snapshot.log
    if log.last_line is None:
        by_stack = "; the phase is the one that the stacks show" if scene.phase_source == "stack" else ""
        return Evidence("log", ("the log is empty" if log.path else "no log can be read") + by_stack)
    silent = scene.t - scene.log_life_t
    text = clean(log.last_line.text, 90)
    said = f"silent for {age(silent)}"
    dated = scene.snapshot.epoch + scene.t - log.last_line.t if log.last_line.t is not None else 0.0
    if dated > silent + DATED_S:  # it was silent before the watch began
        said += f" at least, its last dated line is {duration(dated)} old by this machine's clock"
    return Evidence("log", f"{said}, {log.lines} lines, the last: {text}", log.last_line.rank)


def quiet_fact(view: RankView) -> Evidence:
    """Which signal of a rank moved last, and when."""
    mark = view.strong_mark
    if view.clock is None:
        return Evidence("proc", f"{view.name}: no counters could be read", view.rank, view.pid)
    if view.process.cpu_s is None:
        return Evidence(
            "proc", f"{view.name} (pid {view.pid}): state {view.process.state}, no counters", view.rank, view.pid
        )
    last = f"last sign of life {age(view.t - mark.t)} ago ({mark.text})" if mark else "no sign of life yet"
    if view.cpu_counts and view.cpu_mark and (mark is None or view.cpu_mark.t > mark.t):
        last = f"last sign of life {age(view.t - view.cpu_mark.t)} ago ({view.cpu_mark.text})"
    return Evidence("proc", f"{view.name} (pid {view.pid}): {view.where()}; {last}", view.rank, view.pid)


def files_facts(scene: Scene) -> list[Evidence]:
    """The watched folders, one fact each."""
    seen = scene.snapshot.watch_dirs
    now = scene.snapshot.epoch + scene.t
    return [
        Evidence("files", f"{clean(folder.path, 60)}: {watched_dir.words(folder, now)}", value=folder.size_bytes)
        for folder in (seen.dirs if seen is not None else ())[:2]
    ]


def doing_fact(view: RankView) -> Evidence:
    signal, words = view.action()
    return Evidence(signal or "proc", f"{view.name} (pid {view.pid}) {words}", view.rank, view.pid)


def wait_fact(view: RankView) -> Evidence:
    """What it waits in; its counters where that cannot be told."""
    if not view.wait.text:
        return quiet_fact(view)
    return Evidence(view.wait.signal or "proc", f"{view.name} (pid {view.pid}) {view.wait.text}", view.rank, view.pid)


def dump_step(view: RankView) -> NextStep:
    return NextStep(f"See where {view.name} stands", f"py-spy dump --nonblocking --pid {view.pid}")


def since(scene: Scene, t: float) -> str:
    return duration(max(0.0, scene.t - t))


def missing_signals(scene: Scene) -> tuple[Missing, ...]:
    """Which rules could not be evaluated, and what would give them."""
    found: dict[str, Missing] = {}
    snapshot = scene.snapshot
    for source in (
        snapshot.procs.missing,
        *(v.process.missing for v in scene.ranks),
        snapshot.port.missing if snapshot.port is not None else (),
        *(d.missing for d in snapshot.stacks[-4:]),
    ):
        for item in source:
            found.setdefault(item.signal, item)
    if snapshot.gpu.unavailable and scene.args.device != "cpu":
        found.setdefault(
            "gpu",
            Missing(
                "gpu",
                f"a rank that spins in a collective cannot be told from one that works: {snapshot.gpu.unavailable}",
                snapshot.gpu.remedy,
            ),
        )
    if scene.blind and scene.ranks:
        why = "neither CPU time nor bytes of any rank can be read: hung or slow cannot be told"
        found.setdefault("counters", Missing("counters", why, "run sgmon as the server's user, or as root"))
    server = snapshot.server
    if server is not None and not snapshot.log.lines and server.log_kind not in ("file", "deleted", ""):
        found.setdefault(
            "log", Missing("log", _OUTPUT.get(server.log_kind, "the server writes no file"), "give --log FILE")
        )
    for probe in snapshot.probes:
        if probe.in_flight_since_t is not None and snapshot.t - probe.in_flight_since_t > 10:
            hung = duration(snapshot.t - probe.in_flight_since_t)
            found.setdefault(probe.name, Missing(probe.name, f"the {probe.name} probe has hung for {hung}"))
        elif probe.error:
            found.setdefault(probe.name, Missing(probe.name, probe.error, probe.remedy))
    return tuple(found.values())
