"""Who died first, in made-up situations: each has a law of its own."""

from __future__ import annotations

from typing import Any

import pytest

from sgmon.commands import exit_code_of
from sgmon.model import Event, KernelLine, KernelReading, OomCount, Role, ServerArgs
from tests.diagnosis.world import Rank, World

_LOST = (
    "TP0: Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "torch/distributed/distributed_c10d.py", line 3151, in broadcast\n'
    "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [10.0.0.2]:21121: Connection reset by peer."
)


def gone(*ranks: Rank, **how: Any) -> None:
    for rank in ranks:
        rank.does(gone=True, state="X", **how)


def text(world: World) -> str:
    return " / ".join(fact.text for fact in world.verdict.evidence)


def test_a_look_in_the_middle_of_a_ctrl_c_calls_it_no_crash() -> None:
    world = World(2).to("ready").run(5)
    before = world.verdict.state
    gone(*world.ranks, exit_signal=9)  # by their launcher, which has not ended yet
    world.run(1)
    assert world.verdict.state == before
    gone(world.launcher, exit_signal=2)
    world.run(1)
    assert world.verdict.state == "ended"
    assert "crashed" not in {verdict.state for _, verdict in world.history}


@pytest.mark.parametrize("launcher_ends", [True, False])
def test_a_look_after_a_moment_tells_when_the_launcher_has_ended(launcher_ends) -> None:
    """It may be about to end by a Ctrl-C for as long as it lives."""
    world = World(2).to("graphs").run(5)
    gone(*world.ranks, exit_signal=9)
    world.run(1)
    assert world.verdict.state == "progressing"
    if launcher_ends:
        gone(world.launcher, exit_signal=9)
    world.look(0.3)
    assert world.verdict.state == ("crashed" if launcher_ends else "progressing")
    world.look(0.7)
    assert world.verdict.state == "crashed"


def test_a_killed_launcher_takes_its_ranks_along() -> None:
    world = World(2).to("graphs").run(5)
    gone(world.launcher, *world.ranks, exit_signal=9)
    world.run(1)
    assert world.verdict.state == "progressing"  # the next look may tell that they were asked to end
    world.run(1)
    assert "which first is not known yet" in world.verdict.headline
    world.run(4)
    assert world.verdict.headline == "the launcher was killed by SIGKILL in the graph capture"
    assert world.verdict.odd_ranks == ()
    assert "took down with it: TP0 (pid 101) and TP1 (pid 102)" in text(world)


def test_without_a_log_it_is_not_known_whether_the_launcher_was_the_first() -> None:
    """SGLang's launcher ends its ranks and itself by SIGKILL after a failure: it looks the same."""
    world = World(2).run(5)
    gone(world.launcher, *world.ranks, exit_signal=9)
    world.run(8)
    assert world.verdict.headline.endswith("which first is not known")
    assert world.verdict.odd_ranks == ()


def test_two_ranks_killed_at_once_are_both_named() -> None:
    world = World(4).to("weights").run(5)
    gone(world["TP0"], exit_signal=9, exit_t=5.4)
    gone(world["TP1"], exit_signal=9, exit_t=5.7)
    world.run(6)
    assert world.verdict.headline == (
        "TP0 (pid 101) and TP1 (pid 102) died within 0.3s in the weight load; which first is not known"
    )


def test_the_pidfds_order_what_one_reading_shows() -> None:
    world = World(4).to("weights").run(5)
    gone(world["TP0"], exit_signal=9, exit_t=5.9)
    gone(world["TP1"], exit_signal=9, exit_t=5.1)
    world.run(6)
    assert world.verdict.odd_ranks == ("TP1",)


def test_a_killed_detokenizer_is_named_by_the_pid_in_the_log() -> None:
    world = World(2).to("ready")
    helper = Rank("", 150, role=Role.DETOKENIZER)
    world.ranks.append(helper)
    world.answers(200)
    world.run(5)
    world.log(
        "Subprocess detokenizer (pid=150) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
        "kill_process_tree called: parent_pid=100, include_parent=True, pid=100",
    )
    world.step(Event(world.t + 0.2, "tick"))
    assert world.verdict.headline == "the detokenizer (pid 150) was killed by SIGKILL after it was ready"
    gone(world.launcher, *world.ranks, exit_signal=9)
    world.run(1)
    assert world.verdict.headline == "the detokenizer (pid 150) was killed by SIGKILL after it was ready"
    assert "no sign of the OOM killer" in text(world)


def test_a_rank_whose_exit_status_is_not_known_is_named_by_the_launcher() -> None:
    """It was killed before its pidfd was opened, and reaped before the next look."""
    world = World(2).to("weights").run(5)
    world.log("RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 ...")
    gone(*world.ranks)
    gone(world.launcher, exit_code=1)
    world.run(5)
    assert world.verdict.odd_ranks == ("TP0",)
    assert world.verdict.headline.startswith("TP0 (pid 101) was killed by SIGKILL")


def test_a_server_whose_detokenizer_was_killed_fails_although_its_ranks_load_on() -> None:
    """SGLang's watchdog begins after its ranks are ready (a real 0.5.23, killed in the load)."""
    world = World(2)
    helper = Rank("", 150, role=Role.DETOKENIZER)
    world.ranks.append(helper)
    world.run(3)
    gone(helper, exit_signal=9)
    world.run(3)
    world.to("kv_cache").run(5)
    assert world.verdict.state == "crashed"
    assert world.verdict.headline.startswith("the detokenizer (pid 150) was killed by SIGKILL")


def test_the_kernels_log_orders_what_the_oom_killer_took() -> None:
    """A launcher needs longer to end than a rank that was killed after it (a real server in a group of its own)."""
    world = World(2).run(5)
    lines = [
        KernelLine("oom", pid, f"Memory cgroup out of memory: Killed process {pid} (python)") for pid in (100, 101)
    ]
    gone(world["TP0"], exit_signal=9, exit_t=5.4)
    world.launcher.does(state="Z")
    world.step(Event(world.t, "kernel", KernelReading(tuple(lines))))
    world.run(1)
    assert world.verdict.headline == "the launcher was killed by the kernel's OOM killer in an unknown phase"
    gone(world.launcher, exit_signal=9, exit_t=5.9)
    world.run(6)
    assert world.verdict.headline == "the launcher was killed by the kernel's OOM killer in an unknown phase"


def test_of_two_ends_by_the_oom_killer_without_an_order_the_headline_has_the_cause() -> None:
    world = World(2)
    group = "/sys/fs/cgroup/memory/all"
    for one in (world.launcher, *world.ranks):
        one.does(cgroup=group)
    world.host.update(oom=(OomCount("", 12), OomCount(group, 0)))
    world.run(5)
    world.host.update(oom=(OomCount("", 14), OomCount(group, 2)))
    gone(world["TP0"], exit_signal=9, exit_t=5.4)
    gone(world.launcher, exit_signal=9, exit_t=5.8)
    world.run(6)
    assert "the kernel's OOM killer struck 2 times; which first is not known" in world.verdict.headline


def test_workers_that_were_started_anew_are_no_cause_of_a_later_crash() -> None:
    """Thirty tokenizer workers of a real server on two cores were killed and started anew before its launcher died."""
    world = World(1, args=ServerArgs(model_path="/models/m", raw=(("tokenizer_worker_num", "2"),))).to("http")
    workers = [Rank("", pid, role=Role.TOKENIZER) for pid in (150, 151)]
    world.ranks += workers
    world.run(3)
    gone(workers[0], exit_signal=9)
    world.run(20)
    assert world.verdict.state != "crashed"
    gone(world.launcher, world.ranks[0], workers[1], exit_signal=9)
    world.run(8)
    assert world.verdict.headline.startswith("the launcher was killed by SIGKILL"), world.verdict.headline


def test_a_rank_of_another_node_is_gone() -> None:
    """Node 0 sees its own ranks end with a status of 0: the peer was the first, and is not here."""
    world = World(1, args=ServerArgs(tp=2, nnodes=2, model_path="/models/m"), names=["TP0"]).to("ready")
    world.answers(200)
    world.run(5)
    world.log(_LOST)
    gone(world["TP0"], exit_code=0)
    world.run(6)
    assert world.verdict.state == "crashed"
    assert world.verdict.headline == "TP0 lost the connection to a rank on another node after it was ready"
    assert "Connection reset by peer" in text(world)


def test_the_oom_killer_of_a_ranks_own_group_is_named() -> None:
    world = World(2).to("weights")
    world["TP1"].does(cgroup="/sys/fs/cgroup/memory/one")
    world.host.update(oom=(OomCount("", 12), OomCount("/sys/fs/cgroup/memory/one", 0)))
    world.run(5)
    world.host.update(oom=(OomCount("", 13), OomCount("/sys/fs/cgroup/memory/one", 1)))
    gone(world["TP1"], exit_signal=9)
    world.run(1)
    assert world.verdict.headline.startswith("TP1 (pid 102) was killed by the kernel's OOM killer in the weight load")
    assert "somebody else" not in text(world)


def test_the_kernels_log_names_the_pid_of_two() -> None:
    world = World(2).to("weights").run(5)
    line = KernelLine("oom", 102, "Memory cgroup out of memory: Killed process 102 (sglang::schedul)")
    world.step(Event(world.t, "kernel", KernelReading((line,))))
    world.log("Received sigquit from a child process. It usually means the child failed.")
    gone(world.launcher, *world.ranks, exit_signal=9)
    world.run(5)
    assert world.verdict.odd_ranks == ("TP1",)
    assert line.text in text(world)


@pytest.mark.parametrize(("host", "said"), [(12, True), (13, False)])
def test_somebody_else_is_accused_only_where_it_is_known(host: int, said: bool) -> None:
    world = World(2).to("weights")
    world.host.update(oom=(OomCount("", 12),))
    world.run(5)
    world.host.update(oom=(OomCount("", host),))
    gone(world["TP1"], exit_signal=9)
    world.run(4)
    assert ("somebody else sent SIGKILL" in text(world)) is said


def test_a_helper_without_which_the_server_goes_on_is_no_crash() -> None:
    world = World(2).to("warmup")
    helper = Rank("", 150, role=Role.TOKENIZER)
    world.ranks.append(helper)
    world.run(5)
    gone(helper, exit_signal=9)
    world.run(3)
    assert world.verdict.state == "crashed"
    world.log("The server is fired up and ready to roll!")
    world.answers(200)
    world.run(5)
    assert world.verdict.state == "ready"


@pytest.mark.parametrize(("phase", "code"), [("weights", 4), ("ready", 0)])
def test_a_server_that_was_asked_to_end_has_ended(phase: str, code: int) -> None:
    world = World(2).to(phase)
    world.answers(200 if phase == "ready" else None, answer="http" if phase == "ready" else "refused")
    world.run(5)
    gone(world.launcher, exit_signal=15)
    gone(*world.ranks, exit_signal=9)
    world.run(3)
    assert world.verdict.state == "ended"
    assert "crashed" not in world.states()
    assert exit_code_of(world.store.snapshot) == code


def test_ctrl_c_of_the_whole_group_is_no_crash() -> None:
    world = World(2).to("weights").run(5)
    gone(*world.ranks, exit_signal=2)
    gone(world.launcher, exit_code=130)
    world.run(3)
    assert world.verdict.state == "ended"


def test_a_rank_killed_before_somebody_ends_the_rest_stays_the_cause() -> None:
    world = World(2).to("weights").run(5)
    gone(world["TP1"], exit_signal=9)
    world.run(10)
    gone(world.launcher, exit_signal=15)
    gone(world["TP0"], exit_signal=9)
    world.run(5)
    assert (world.verdict.state, world.verdict.odd_ranks) == ("crashed", ("TP1",))


def test_stopped_is_over_at_once() -> None:
    world = World(2).to("weights")
    for rank in world.ranks:
        rank.compute()
    world.run(5)
    world["TP1"].does(state="T", wchan="do_signal_stop", cpu=0.0)
    world.run(3)
    world["TP1"].compute()
    world.run(1)
    assert world.verdict.state == "progressing"


def test_a_shutdown_that_does_not_end_is_unhealthy() -> None:
    world = World(2).to("ready")
    world.answers(200)
    world.run(5)
    world.log("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    world.run(70)
    assert world.verdict.state == "unhealthy"
    assert "has not ended" in world.verdict.headline
