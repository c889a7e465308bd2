"""A log that has the lines of an earlier start, or of another server that lives: nothing is said by lines of others."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.analyse.store import Store
from sgmon.model import (
    Event,
    Listener,
    LogReading,
    PortReading,
    Process,
    ProcsReading,
    Role,
    Server,
    ServerArgs,
    ServerReading,
    Snapshot,
    Verdict,
)

BEGAN = 1_795_000_000.0


def args_line(port: int) -> str:
    return f'[2026-11-30 15:00:00] server_args=ServerArgs(model_path="m", tp_size=2, port={port})\n'


BEGUN = args_line(31001) + "".join(
    f"[2026-11-30 15:00:09 TP{n}] {text}\n"
    for text in ("Init torch distributed begin.", "Load weight begin. avail mem=130.00 GB")
    for n in (0, 1)
)
DIED = "[2026-11-30 15:00:20] Rank 0 scheduler died during initialization (exit code: -9).\n"
READY = "[2026-11-30 15:01:00] The server is fired up and ready to roll!\n"
SIGTERM = "[2026-11-30 15:09:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
WARNED = "/v/lib/x.py:4: FutureWarning: no\n"
RANKS = [(Role.WORKER, "TP0"), (Role.WORKER, "TP1"), (Role.DETOKENIZER, "")]


class Watch:
    """What one server's processes and its log show, reading by reading."""

    def __init__(self, text: str, children: list[tuple[Role, str]], writers: tuple[int, ...] = ()) -> None:
        self.store, self.t, self.size = Store(BEGAN + 9), 0.0, 0
        args = ServerArgs(tp=2, port=31002)
        server = Server(100, 1000, BEGAN, args=args, args_source="command line", version="0.5.23", log_path="/l")
        self.server = replace(server, log_writers=writers)
        self.store.step(Event(0.0, "server", ServerReading(self.server)))
        self.processes = [Process(100, 1, 1000, Role.LAUNCHER, state="S", cpu_s=9.0)]
        self.processes += [
            Process(101 + n, 100, 1001 + n, role, rank=rank, state="S", cpu_s=8.0)
            for n, (role, rank) in enumerate(children)
        ]
        self.log(text)

    def log(self, text: str) -> None:
        self.size += len(text)
        self.store.step(Event(self.t, "log", LogReading("/l", "8:1", self.size - len(text), text, self.size)))

    def look(self, after_s: float = 0.3) -> Verdict:
        self.t += after_s
        self.store.step(Event(self.t, "procs", ProcsReading(tuple(self.processes), uid=0)))
        seen = self.store.step(Event(self.t, "tick"))
        return diagnose(replace(seen, verdict=Snapshot().verdict))  # as one look draws it

    def change(self, at: int, **fields: object) -> None:
        self.processes[at] = replace(self.processes[at], **fields)


def texts(verdict: Verdict) -> list[str]:
    """Its evidence in words."""
    return [fact.text for fact in verdict.evidence]


def test_the_crash_of_an_earlier_start_is_not_that_of_a_launcher_that_has_just_begun() -> None:
    watch = Watch(BEGUN + DIED + WARNED, [])
    verdict = watch.look()
    assert (verdict.state, verdict.rule, verdict.phase) == ("unknown", "earlier-start", "")
    assert "line 6" in verdict.headline and "may tell of an earlier start" in verdict.headline
    assert "its process was started 9.3s ago" in texts(verdict)
    for _ in range(8):
        watch.change(0, cpu_s=watch.processes[0].cpu_s + 1.0)
        verdict = watch.look(1.0)
    assert (verdict.state, verdict.phase) == ("progressing", "launch")
    watch.log(args_line(31002))
    assert watch.look(3.0).rule != "earlier-start"


def test_of_a_launcher_beside_a_server_with_the_same_log_the_other_server_is_named() -> None:
    verdict = Watch(BEGUN + WARNED, [], writers=(90,)).look()
    assert (verdict.state, verdict.rule) == ("unknown", "earlier-start")
    assert "may tell of the server of pid 90, which writes into the same file" in verdict.headline


def test_neither_is_its_shutdown_nor_its_ready_line() -> None:
    for old in (BEGUN + READY + SIGTERM, BEGUN + READY):
        assert Watch(old + WARNED, []).look().rule == "earlier-start"


def test_a_failure_that_is_written_while_sgmon_looks_is_this_starts_own() -> None:
    watch = Watch(args_line(31002), [])
    watch.look()
    watch.look(30.0)
    watch.log(BEGUN[len(args_line(31001)) :] + DIED)
    watch.look(0.5)
    assert watch.look(5.0).state == "crashed"


def test_what_another_server_writes_into_the_same_file_is_no_crash_of_a_server_that_lives() -> None:
    watch = Watch(BEGUN + args_line(31002), RANKS, writers=(90,))
    watch.look(5.0)
    watch.log(DIED)
    watch.look(0.5)
    verdict = watch.look(5.0)
    assert (verdict.state, verdict.rule, verdict.odd_ranks) == ("unknown", "shared-log", ())
    assert "the server of pid 90 writes into the same file" in verdict.headline
    watch.store.step(Event(watch.t, "server", ServerReading(replace(watch.server, log_writers=()))))
    assert watch.look(9.0).rule == "shared-log", "it has ended meanwhile, and its lines are there"
    watch.change(1, gone=True, state="X", exit_signal=9)
    watch.look(1.0)
    assert watch.look(9.0).state == "crashed"


def test_a_server_that_has_ended_before_sgmon_came_may_have_written_them() -> None:
    """Its arguments are in the file without an end before this server's."""
    verdict = Watch(BEGUN + args_line(31002) + DIED, RANKS).look(1.0)
    assert (verdict.state, verdict.rule) == ("unknown", "shared-log")
    assert texts(verdict)[-2:] == [
        "an earlier start in the same file has not ended there, and may still write",
        "the launcher and TP0-1 live",
    ]
    alone = Watch(BEGUN + DIED + args_line(31002) + BEGUN[len(args_line(31001)) :] + DIED, RANKS).look(1.0)
    assert alone.state == "crashed"


def test_a_server_that_was_ready_may_still_write_and_one_that_was_ended_may_not() -> None:
    later = args_line(31002) + BEGUN[len(args_line(31001)) :] + DIED
    served = Watch(BEGUN + READY + later, RANKS).look(1.0)
    assert (served.state, served.rule) == ("unknown", "shared-log")
    assert Watch(BEGUN + READY + SIGTERM + later, RANKS).look(1.0).state == "crashed"


def test_the_ready_line_of_the_other_one_is_not_this_servers() -> None:
    """The other is gone: its arguments are there, and its ready line after this server's arguments."""
    watch = Watch(BEGUN + args_line(31002) + READY, RANKS)
    watch.store.step(Event(watch.t, "port", PortReading("127.0.0.1", 31002, "refused")))
    verdict = watch.look(1.0)
    assert (verdict.state, verdict.rule) == ("unknown", "shared-log")
    assert "the ready line 7" in verdict.headline


def test_a_server_that_answers_is_ready_whatever_the_other_writes() -> None:
    watch = Watch(BEGUN + args_line(31002) + READY + SIGTERM, RANKS, writers=(90,))
    own = (Listener("127.0.0.1:31002", 100, True),)
    watch.store.step(Event(watch.t, "port", PortReading("127.0.0.1", 31002, "http", 200, 0.1, listeners=own)))
    verdict = watch.look(1.0)
    assert (verdict.state, verdict.rule, verdict.phase) == ("ready", "ready", "serving")
    assert "the server of pid 90 writes into the same file" in texts(verdict)


def test_a_server_that_loads_beside_a_ready_one_with_the_same_log_is_seen_to_work() -> None:
    """The other one's ready line had made it unknown until it was ready itself."""
    watch = Watch(BEGUN + args_line(31002) + READY, RANKS, writers=(90,))
    refused = PortReading("127.0.0.1", 31002, "refused")
    watch.store.step(Event(watch.t, "port", refused))
    assert watch.look(1.0).rule == "shared-log"
    for _ in range(30):
        watch.change(1, cpu_s=(watch.processes[1].cpu_s or 0.0) + 1.0)
        verdict = watch.look(1.0)
    assert (verdict.state, verdict.rule, verdict.phase) == ("progressing", "shared-log", "")
    assert "the server of pid 90 writes into the same file" in verdict.headline
    for _ in range(60):
        verdict = watch.look(1.0)
    assert (verdict.state, verdict.rule) == ("unknown", "shared-log"), "nothing moves any more"


def test_a_ready_server_stays_ready_when_another_one_starts_into_its_log() -> None:
    """The arguments of the other one begin a new start in the log: the ready line was gone with the one before."""
    watch = Watch(BEGUN + READY, RANKS, writers=(90,))
    own = (Listener("127.0.0.1:31002", 100, True),)
    for _ in range(4):
        watch.store.step(Event(watch.t, "port", PortReading("127.0.0.1", 31002, "http", 200, 1.0, listeners=own)))
        verdict = watch.look(2.0)
    assert verdict.state == "ready"
    watch.log(args_line(31001) + BEGUN[len(args_line(31001)) :])
    for _ in range(10):
        watch.store.step(Event(watch.t, "port", PortReading("127.0.0.1", 31002, "http", 200, 1.0, listeners=own)))
        verdict = watch.look(2.0)
        assert (verdict.state, verdict.phase) == ("ready", "serving")
    assert any("the server of pid 90 writes into the same file" in fact.text for fact in verdict.evidence)
