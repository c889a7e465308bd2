"""Ranks that had died, and were reaped, before the one look that ``sgmon status`` takes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.store import Store
from sgmon.model import Event, LogReading, Process, ProcsReading, Role, Server, ServerArgs, ServerReading
from tests.diagnosis.world import World

BEGAN = 1_795_000_000.0  # when the server was started: tick 1000


def looked(
    args: ServerArgs, processes: list[tuple[Role, str]], age_s: float = 60.0, family: str = "sglang", **fields: object
) -> Store:
    """One look at a server whose processes are as old as it. fields: of every child."""
    store = Store(BEGAN + age_s)
    server = Server(100, 1000, BEGAN, args=args, args_source="command line", version="0.5.23", family=family)
    if family == "vllm":
        server = replace(server, version="0.32.0")
    store.step(Event(0.0, "server", ServerReading(server)))
    launcher = Process(100, 1, 1000, Role.LAUNCHER, state="S", cpu_s=9.0)
    children = [
        Process(101 + at, 100, 1001 + at, role, rank=rank, **{"state": "S", "cpu_s": 8.0, **fields})
        for at, (role, rank) in enumerate(processes)
    ]
    store.step(Event(0.3, "procs", ProcsReading((launcher, *children), uid=0)))
    store.step(Event(0.4, "tick"))
    return store


@pytest.mark.parametrize(
    ("family", "args", "processes", "lost"),
    [
        ("sglang", ServerArgs(dp=2), [(Role.CONTROLLER, ""), (Role.WORKER, "DP0")], ("DP1",)),
        (
            "sglang",
            ServerArgs(dp=2, tp=2, raw=()),
            [(Role.CONTROLLER, ""), (Role.WORKER, "DP0 TP0"), (Role.WORKER, "DP1 TP0"), (Role.WORKER, "DP1 TP1")],
            ("DP0 TP1",),
        ),
        ("sglang", ServerArgs(tp=2, pp=2), [(Role.WORKER, f"PP{p} TP{t}") for p, t in ((0, 0), (0, 1), (1, 1))], ("PP1 TP0",)),
        ("sglang", ServerArgs(tp=4, nnodes=2, node_rank=1), [(Role.WORKER, "TP2")], ("TP3",)),
        ("vllm", ServerArgs(dp=2), [(Role.CONTROLLER, ""), (Role.WORKER, "DP0")], ("DP1",)),
        ("vllm", ServerArgs(tp=2), [(Role.ENGINE, ""), (Role.WORKER, "TP1")], ("TP0",)),
    ],
)  # fmt: skip
def test_one_look_names_the_rank_that_is_missing(family, args, processes, lost):
    verdict = looked(args, processes, family=family).snapshot.verdict
    assert (verdict.state, verdict.odd_ranks) == ("crashed", lost)
    assert verdict.headline.startswith(f"{lost[0]} has no process")


@pytest.mark.parametrize(
    ("fields", "verdict"), [({"state": "T"}, "stopped"), ({"state": "Z", "gone": True, "exit_signal": 9}, "crashed")]
)
def test_one_look_without_a_log_does_not_guess_the_phase(fields, verdict):
    """It may have been ready for days: titles and no mapped weights are the same then."""
    children = [(Role.WORKER, "TP0"), (Role.WORKER, "TP1"), (Role.DETOKENIZER, "")]
    store = looked(ServerArgs(tp=2), children, **fields)
    found = store.step(Event(9.0, "tick")).verdict
    assert (found.state, found.phase) == (verdict, "")
    assert "in an unknown phase" in found.headline


@pytest.mark.parametrize("logged", [False, True])
def test_of_two_that_had_died_the_one_that_was_not_reaped_yet_is_not_said_to_be_the_first(logged):
    """DP1 was killed; the launcher reaps it, and kills DP0, whose zombie is all that is left to see."""
    children = [(Role.CONTROLLER, ""), (Role.WORKER, "DP0"), (Role.DETOKENIZER, "")]
    store = looked(ServerArgs(dp=2), children)
    server = store.snapshot.server
    store = Store(BEGAN + 60)
    store.step(Event(0.0, "server", ServerReading(server)))
    if logged:
        text = "[2026-11-29 15:00:00 DP1 TP0] RuntimeError: no\n"
        args = '[2026-11-29 14:59:00] server_args=ServerArgs(model_path="m", dp_size=2)\n'
        store.step(Event(0.1, "log", LogReading("/l", "8:1", 0, args + text, len(args + text))))
    launcher = Process(100, 1, 1000, Role.LAUNCHER, state="S", cpu_s=9.0)
    dead = {"state": "Z", "gone": True, "exit_signal": 9}
    zombie = Process(102, 101, 1002, Role.WORKER, rank="DP0", **dead)
    store.step(Event(0.3, "procs", ProcsReading((launcher, zombie), uid=0)))
    verdict = store.step(Event(9.0, "tick")).verdict
    assert verdict.state == "crashed"
    assert not any("DP0" in rank for rank in verdict.odd_ranks), verdict
    if not logged:
        assert verdict.headline == (
            "DP1 and DP0 (pid 102) had ended before sgmon looked in an unknown phase; which first is not known"
        )


@pytest.mark.parametrize("tp", [1, 2])
def test_the_process_that_the_log_names_is_gone_and_the_zombie_is_of_its_detokenizer(tp):
    """Seen of a real server: a rank was killed and reaped, and the launcher killed the detokenizer."""
    store = looked(ServerArgs(tp=tp), [])
    text = '[2026-11-30 15:35:00] server_args=ServerArgs(model_path="m")\n'
    text += "[2026-11-30 15:36:26] Subprocess scheduler_0 (pid=149) crashed with exit code -9. Triggering SIGQUIT for cleanup...\n"
    launcher = Process(100, 1, 1000, Role.LAUNCHER, state="S", cpu_s=9.0)
    zombie = Process(150, 100, 1002, Role.DETOKENIZER, state="Z", gone=True, exit_signal=9)
    store.step(Event(0.5, "log", LogReading("/l", "8:1", 0, text, len(text))))
    store.step(Event(0.6, "procs", ProcsReading((launcher, zombie), uid=0)))
    verdict = store.step(Event(9.0, "tick")).verdict
    assert (verdict.state, verdict.headline) == ("crashed", "a rank was killed by SIGKILL (importing)")
    assert any("scheduler_0 (pid=149)" in fact.text for fact in verdict.evidence)


def test_a_launcher_whose_threads_run_on_is_about_to_end():
    """Right after a crash its main thread is a zombie, and others of its threads still run."""
    store = looked(ServerArgs(), [(Role.DETOKENIZER, "")])
    raised = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nRuntimeError: no\n'
    line = '[2026-11-29 15:00:00] server_args=ServerArgs(model_path="m", tp_size=1)\n'
    store.step(Event(1.0, "log", LogReading("/l", "8:1", 0, line + raised, len(line + raised))))
    launcher = Process(100, 1, 1000, Role.LAUNCHER, state="Z", threads=3, cpu_s=9.0)
    store.step(Event(1.1, "procs", ProcsReading((launcher,), uid=0)))
    verdict = store.step(Event(30.0, "tick")).verdict
    assert verdict.state == "crashed"
    assert [fact.text for fact in verdict.evidence if fact.pid is None][-1] == "about to end: the launcher (pid 100)"


def test_the_only_rank_is_missing_where_what_is_started_after_it_lives():
    verdict = looked(ServerArgs(), [(Role.DETOKENIZER, "")]).snapshot.verdict
    assert (verdict.state, verdict.odd_ranks, verdict.rule) == ("crashed", (), "rank-absent")
    assert verdict.headline.startswith("the scheduler has no process")
    assert "1 detokenizer lives, the youngest for 1m00s" in verdict.evidence[1].text
    young = looked(ServerArgs(), [(Role.DETOKENIZER, "")], age_s=4.0).snapshot.verdict
    unborn = looked(ServerArgs(), [(Role.DETOKENIZER, ""), (Role.IMPORTING, "")]).snapshot.verdict
    assert "crashed" not in (young.state, unborn.state)


@pytest.mark.parametrize(
    ("args", "processes", "more"),
    [
        (ServerArgs(dp=2), [(Role.WORKER, "DP0")], {"age_s": 4.0}),  # the other is about to be born
        (ServerArgs(dp=2), [(Role.WORKER, "DP0"), (Role.IMPORTING, "")], {}),  # it lives, without a title
        (ServerArgs(dp=2), [(Role.WORKER, "DP0"), (Role.CONTROLLER, "")], {"state": "T"}),  # its parent cannot
        (ServerArgs(dp=2), [(Role.WORKER, "DP0 EP0")], {}),  # names of a version that is not known
        (ServerArgs(dp=2, known=False), [(Role.WORKER, "DP0")], {}),
        (ServerArgs(dp=2), [(Role.WORKER, "DP0"), (Role.WORKER, "DP1")], {}),
    ],
)
def test_what_may_still_come_is_not_missing(args, processes, more):
    assert looked(args, processes, **more).snapshot.verdict.state != "crashed"


def test_actors_of_ray_are_no_children():
    ray = ServerArgs(tp=2, raw=(("distributed_executor_backend", "ray"),))
    assert looked(ray, [(Role.ENGINE, ""), (Role.WORKER, "TP0")], family="vllm").snapshot.verdict.state != "crashed"


def test_a_rank_that_has_spoken_was_there_however_young_the_others_are():
    world = World(2, args=ServerArgs(tp=2, model_path="/models/m")).to("weights")
    world.ranks.pop()
    world.run(1)
    assert (world.verdict.state, world.verdict.odd_ranks) == ("crashed", ("TP1",))
    assert "TP1 spoke, last in line" in world.verdict.evidence[2].text
