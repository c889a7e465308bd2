"""Ready, unhealthy, stopped, crashed, ended: what is certain the moment it is seen."""

from __future__ import annotations

import pytest

from sgmon.model import ServerArgs
from tests.diagnosis.world import World


def test_stopped_rank_is_named_at_once() -> None:
    world = World(8).to("weights")
    for rank in world.ranks:
        rank.compute()
    world.run(10)
    world["TP3"].does(state="T", wchan="do_signal_stop", cpu=0.0)
    world.run(2)
    assert world.verdict.state == "stopped"
    assert world.verdict.odd_ranks == ("TP3",)
    assert world.verdict.next[0].command == "kill -CONT 104"
    assert world.since("stopped", 10) <= 1.5


def test_whole_server_stopped_by_ctrl_z() -> None:
    world = World(2).to("weights")
    for rank in [*world.ranks, world.launcher]:
        rank.does(state="T", wchan="do_signal_stop")
    world.run(3)
    assert world.verdict.state == "stopped"
    assert "the whole server is paused" in world.verdict.headline
    assert world.verdict.odd_ranks == ()


def test_frozen_container_is_in_state_s() -> None:
    world = World(2).to("weights")
    for rank in world.ranks:
        rank.does(state="S", wchan="get_signal", frozen=True, cpu=0.0)
    world.launcher.does(frozen=True)
    world.run(3)
    assert world.verdict.state == "stopped"
    assert world.verdict.rule == "frozen"


def test_debugger_that_stays() -> None:
    world = World(1).to("weights")
    world[0].does(state="t", wchan="ptrace_stop", tracer_pid=9230, cpu=0.0)
    world.run(10)
    assert world.verdict.state == "stopped"
    assert "9230" in world.verdict.headline


@pytest.mark.parametrize("ready", [False, True])
def test_rank_gone_while_the_launcher_lives(ready: bool) -> None:
    world = World(2).to("ready" if ready else "weights")
    if ready:
        world.answers(200)
    world.run(10)
    world["TP1"].does(gone=True, state="X", exit_signal=9, exit_source="pidfd")
    world.run(1)
    assert world.verdict.state == "crashed"
    assert world.verdict.odd_ranks == ("TP1",)
    assert "was killed by SIGKILL" in world.verdict.headline
    assert ("after it was ready" in world.verdict.headline) is ready
    world.ranks.pop()
    world.run(20)
    assert world.verdict.state == "crashed"
    assert world.verdict.odd_ranks == ("TP1",)


def test_the_killed_rank_is_named_not_the_one_that_misses_it() -> None:
    """Seen on a real server: TP1 is killed, TP0 raises gloo's complaint and exits with 0 within the same second."""
    world = World(2).to("ready")
    world.answers(200)
    world.run(5)
    world.log(
        "TP0: Scheduler hit an exception: Traceback (most recent call last):",
        '  File "torch/distributed/distributed_c10d.py", line 3151, in broadcast',
        "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:21121: Connection reset by peer.",
    )
    world["TP0"].does(gone=True, state="Z", exit_code=0)
    world["TP1"].does(gone=True, state="Z", exit_signal=9)
    world.run(3)
    assert world.verdict.state == "crashed"
    assert world.verdict.odd_ranks == ("TP1",)
    assert world.verdict.headline.startswith("TP1 (pid 102) was killed by SIGKILL after it was ready")


def says(world: World, words: str) -> bool:
    return words in [one.text for one in world.verdict.evidence]


def test_a_port_that_says_200_after_a_rank_has_died_is_said_when_it_was_asked_anew() -> None:
    world = World(2).to("ready")
    world.answers(200)
    world.run(6)
    world["TP1"].does(gone=True, state="Z", exit_signal=9)
    world.run(1)
    said = "/health on 127.0.0.1:30000 says 200 all the same: what watches it alone notices nothing"
    assert world.verdict.state == "crashed" and not says(world, said)
    world.run(4)
    assert world.verdict.state == "crashed" and says(world, said)


def test_oom_killer_is_said_only_when_its_count_moved() -> None:
    world = World(2).to("weights")
    world.run(5)
    world.host["oom_kills"] = 1
    world["TP0"].does(gone=True, state="X", exit_signal=9)
    world.run(2)
    assert "OOM killer" in world.verdict.headline


def test_launcher_that_kills_itself_is_no_oom() -> None:
    world = World(1).to("kv_cache")
    world.log(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.72 GiB. GPU 0 has a total capacity of 139.80 GiB"
    )
    world.run(2)
    for rank in [*world.ranks, world.launcher]:
        rank.does(gone=True, state="X")
    world.launcher.does(exit_signal=9)
    world.run(3)
    assert world.verdict.state == "crashed"
    assert world.verdict.headline.startswith("out of GPU memory")
    assert not any("OOM killer struck" in e.text for e in world.verdict.evidence)


def test_sigterm_during_the_start() -> None:
    world = World(1).to("weights").run(5)
    world.launcher.does(gone=True, state="X", exit_signal=15)
    world[0].does(gone=True, state="X", exit_signal=9)
    world.run(2)
    assert world.verdict.state == "ended"


def test_shut_down_after_ready_is_no_crash() -> None:
    world = World(2).to("ready")
    world.answers(200)
    world.run(10)
    world.log("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    world.answers(503)
    world.run(3)
    assert world.verdict.state == "ended"
    for rank in [*world.ranks, world.launcher]:
        rank.does(gone=True, state="X")
    world.run(5)
    assert world.verdict.state == "ended"
    assert "crashed" not in world.states()


def test_ready_needs_line_and_200_and_own_socket() -> None:
    world = World(1).to("warmup")
    world.answers(200)
    world.run(10)
    assert world.verdict.state != "ready"
    world.log("The server is fired up and ready to roll!")
    world.run(3)
    assert world.verdict.state == "ready"


def test_ready_line_with_a_port_that_is_not_asked() -> None:
    """``--no-http``: neither ready nor progressing for ever."""
    world = World(1).to("ready")
    world.answers(None, answer="skipped")
    world[0].compute()
    world.run(60)
    assert world.states() == ["progressing", "unknown"]
    assert world.verdict.headline == (
        "the ready line is printed and the listening socket is the server's own; /health is not asked"
    )
    world[0].does(gone=True, state="X", exit_signal=9)
    world.run(2)
    assert world.verdict.state == "crashed"


def test_ready_line_of_a_foreign_port() -> None:
    world = World(1)
    world.answers(200, ours=False, name="python3 -m http.server")
    world[0].compute()
    world.to("weights").run(10)
    assert world.verdict.state == "will-fail"
    assert world.verdict.headline.startswith("port 30000 is held by pid 4242 (python3 -m http.server)")
    world.to("ready").run(10)
    assert world.verdict.state == "unhealthy"
    assert "belongs to pid 4242" in world.verdict.headline


def test_bind_error_outranks_the_ready_line() -> None:
    world = World(1).to("http")
    world.log(
        "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use"
    )
    world.run(1)
    assert world.verdict.state == "crashed"
    world.log("The server is fired up and ready to roll!")
    world.answers(200, ours=False)
    world.run(10)
    assert world.verdict.state == "crashed"
    assert "port is already in use" in world.verdict.headline


def test_ready_line_with_503() -> None:
    world = World(1).to("ready")
    world.answers(503)
    world.run(30)
    assert world.verdict.state == "unhealthy"
    assert "503" in world.verdict.headline


def test_0_4_10_post2_with_skip_warmup() -> None:
    world = World(1, args=ServerArgs(skip_server_warmup=True)).to("ready")
    server = world.store.snapshot.server
    assert server is not None
    world.store.snapshot = world.store.snapshot.__class__(
        **{f: getattr(world.store.snapshot, f) for f in world.store.snapshot.__slots__ if f != "server"},
        server=server.__class__(
            **{f: getattr(server, f) for f in server.__slots__ if f != "version"}, version="0.4.10.post2"
        ),
    )
    world.answers(503)
    world.run(30)
    assert "0.4.10.post2 never leaves 503" in world.verdict.headline


def test_health_without_response_is_unhealthy_only_after_its_own_time_out() -> None:
    world = World(1).to("ready")
    world.answers(200)
    world.run(10)
    world.answers(None, answer="no_response")
    world.run(20)
    assert world.verdict.state == "ready"
    world.run(10)
    assert world.verdict.state == "unhealthy"
    world.answers(200)
    world.run(4)
    assert world.verdict.state == "ready"


def test_other_node_says_ready_of_its_ranks_only() -> None:
    world = World(2, args=ServerArgs(tp=4, nnodes=2, node_rank=1)).to("kv_cache")
    world.log("Dummy health check server started in background thread at 127.0.0.1:30000")
    world.answers(200)
    world.run(10)
    assert world.verdict.state == "ready"
    assert "only node 0 can tell" in world.verdict.headline


def test_rank_that_was_gone_before_we_looked() -> None:
    world = World(2).to("weights")
    world.ranks.pop()
    world["TP0"].gloo_wait()
    world.run(30)
    assert world.verdict.state == "crashed"
    assert world.verdict.odd_ranks == ("TP1",)
    assert world.verdict.headline.startswith("TP1 has no process")


def test_process_out_of_sight_for_a_moment_is_not_dead() -> None:
    world = World(2).to("weights")
    for rank in world.ranks:
        rank.compute()
    world.run(5)
    hidden = world.ranks.pop()
    world.run(2)
    world.ranks.append(hidden)
    world.run(5)
    assert "crashed" not in world.states()


def test_first_look_claims_nothing() -> None:
    world = World(2).to("weights")
    world.run(1)
    assert world.verdict.rule == "first-look"
    assert world.verdict.confidence <= 0.4


def test_503_of_the_warm_up_may_be_older_than_the_ready_line() -> None:
    world = World(1).to("warmup")
    world[0].compute()
    world.answers(503)
    world.run(20)
    world.log("The server is fired up and ready to roll!")
    world.run(4)
    world.answers(200)
    world.run(3)
    assert world.states() == ["progressing", "ready"]


def test_a_signalled_launcher_is_the_first_cause_of_its_ranks_end() -> None:
    world = World(2).to("weights").run(5)
    for rank in world.ranks:
        rank.does(gone=True, state="X", exit_signal=9)
    world.launcher.does(gone=True, state="X", exit_signal=15)
    world.run(2)
    assert world.verdict.headline == "the launcher was ended by SIGTERM in the weight load"


def test_all_ranks_gone_in_one_look_and_the_launcher_named_the_first() -> None:
    """A busy machine: the rank that was killed and those that the launcher then took with it are seen gone at once."""
    world = World(2).to("weights")
    world.run(5)
    world.log(
        "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a "
        "common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check."
    )
    for rank in [*world.ranks, world.launcher]:
        rank.does(gone=True, state="X", exit_signal=9, exit_source="pidfd")
    world.run(2)
    assert world.verdict.state == "crashed"
    assert world.verdict.odd_ranks == ("TP1",), world.verdict.headline
    assert world.verdict.headline.startswith("TP1")


LATE_HEALTH = (
    "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. "
    "tic start time: 04:16:16. last_heartbeat time: 04:16:15"
)


def served() -> World:
    world = World(2).to("ready")
    world.answers(200)
    for rank in world.ranks:
        rank.compute()
    return world.run(10)


@pytest.mark.parametrize(
    "lines",
    [
        (LATE_HEALTH,),
        ("Traceback (most recent call last):", '  File "x.py", line 1, in f', "ValueError: bad request"),
    ],
)
def test_an_error_of_a_server_that_serves_on_is_no_crash(lines: tuple[str, ...]) -> None:
    """On a machine at load 60 /health was late for one request; all processes lived."""
    world = served()
    world.raw(
        "".join(f"[2026-11-29 15:00:00] {lines[0]}\n" if n == 0 else f"{line}\n" for n, line in enumerate(lines))
    )
    world.run(30)
    assert set(world.states()) == {"progressing", "ready"}


def test_a_shutdown_after_a_late_health_check_is_ended() -> None:
    world = served()
    world.log(LATE_HEALTH)
    world.run(5)
    world.log("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    world.run(2)
    for rank in world.ranks:
        rank.does(gone=True, exit_signal=9)
    world.run(10)
    assert world.states()[-1] == "ended" and "crashed" not in world.states()


def test_of_many_that_still_live_four_are_named() -> None:
    world = World(tp=8).to("weights").run(3)
    world.raw(
        "[2026-11-29 15:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\nValueError: no\n'
    )
    world.run(5)
    assert (world.verdict.state, world.verdict.rule) == ("crashed", "log-error")
    [alive] = [fact.text for fact in world.verdict.evidence if fact.text.startswith("still alive")]
    assert alive == "still alive: TP0 (pid 101), TP1 (pid 102), TP2 (pid 103), TP3 (pid 104)"
