"""The simulated server in a real docker and a real podman: milestones, verdict and log as on the bare host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.logs.starts import kinds, ready_as_on_the_host, serve
from tests.real.watching import ALARMS, Watcher
from tests.waiting import eventually, free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_docker(docker, beside, bare):
    container = serve(docker)
    watcher = beside(container)
    ready_as_on_the_host(watcher, bare)
    server = watcher.snapshot.server
    assert server.log_path == docker("inspect", "-f", "{{.LogPath}}", container.name)
    assert (
        server.log_source
        == f"fd 2 of pid {container.pid} -> pipe -> docker container {container.id[:12]} (json-file)"
    )
    assert server.version == "0.5.23"  # read in its own mount namespace


def test_docker_with_its_own_network(docker, beside):
    """127.0.0.1 is another one there: /health is asked in the server's network namespace."""
    watcher = beside(serve(docker, network="none"))
    assert watcher.wait_for("ready", timeout_s=120)
    assert watcher.snapshot.port.status == 200 and "network namespace" in watcher.snapshot.port.note


def test_docker_rotates(docker, beside, bare):
    container = serve(docker, "--log-opt", "max-size=2k", "--log-opt", "max-file=400")
    watcher = beside(container)
    ready_as_on_the_host(watcher, bare)
    assert len(list(Path(watcher.snapshot.server.log_path).parent.glob("*-json.log.*"))) > 2


def test_a_watch_that_comes_after_rotations(docker, beside, bare):
    container = serve(docker, "--log-opt", "max-size=2k", "--log-opt", "max-file=400")
    first = beside(container)
    first.wait_for("ready", timeout_s=120)
    first.stop()
    ready_as_on_the_host(beside(container), bare)


@pytest.mark.parametrize("options", [("--log-driver", "local"), ("--log-driver", "local", "-t")])
def test_a_driver_that_only_docker_reads(docker, beside, bare, options):
    container = serve(docker, *options)
    watcher = beside(container)
    ready_as_on_the_host(watcher, bare)
    server = watcher.snapshot.server
    assert server.log_kind == "command" and server.log_command[-1] == container.id
    assert server.log_command[:4] == (*docker.argv, "logs")


def test_docker_keeps_no_log(docker, beside):
    watcher = beside(serve(docker, "--log-driver", "none"))
    watcher.wait_for("ready", timeout_s=120)
    (gap,) = [gap for gap in watcher.snapshot.server.missing if gap.signal == "log"]
    assert "keeps no log" in gap.why


def test_docker_pause(docker, beside):
    container = serve(docker, speed=1.0)
    watcher = beside(container)
    watcher.wait_for("progressing", timeout_s=60)
    container("pause")
    said = watcher.wait_for("stopped", timeout_s=60)
    assert "frozen" in said.verdict.headline or "paused" in said.verdict.headline, said.verdict.headline
    container("unpause")
    watcher.wait_for("progressing", after=said.at, timeout_s=60)


def test_docker_kill(docker, beside):
    container = serve(docker, speed=1.0)
    watcher = beside(container)
    watcher.wait_for("progressing", timeout_s=60)
    container("kill")
    assert watcher.wait_for("crashed", timeout_s=60)


def test_a_rank_is_killed_for_memory(docker, beside):
    container = serve(docker, "--memory", "600m", speed=1.0)
    watcher = beside(container)
    ranks = eventually(
        lambda: [p for p in watcher.snapshot.procs.processes if p.title == "sglang::scheduler_TP1"],
        seen=watcher.history,
    )
    Path(f"/proc/{ranks[0].pid}/oom_score_adj").write_text("1000")
    docker("exec", container.name, "/bin/sh", "-c", "head -c 800m /dev/zero | tail", check=False)
    said = watcher.wait_for("crashed", timeout_s=60)
    assert said.verdict.odd_ranks == ("TP1",), said.verdict
    told = said.verdict.headline
    if sum(one.exit_signal == signal.SIGKILL for one in watcher.snapshot.procs.processes) > 1:
        told = " ".join(
            fact.text for fact in said.verdict.evidence
        )  # in one look with those that the launcher killed
    assert "OOM killer" in told, said.verdict


def test_from_inside_the_container(docker):
    """There the reader of the pipe is not to be seen: the command for the host is named, the rest is as outside."""
    container = serve(docker)
    eventually(lambda: "ready to roll" in container.output())
    seen = container.sgmon("status", "--json", "--no-gpu")
    text = json.dumps(seen)
    assert f"docker logs -f {container.id[:12]} 2>&1 | sgmon --log -" in text, text
    assert seen["server"]["pid"] == 1 and seen["port"]["status"] == 200


def test_started_by_an_exec(docker, beside):
    """Its output is that of docker exec, which nothing keeps: the container's own log is another one."""
    container = docker.start("-c", "import time; time.sleep(1000)")
    port = str(free_port())
    main = [*docker.argv, "exec", container.name, sys.executable, "-m", "tests.logs.in_container"]
    with subprocess.Popen([*main, "healthy", "2", port, "1"], stdout=subprocess.DEVNULL) as executed:
        watcher = Watcher(Path(os.devnull), port=int(port))
        try:
            watcher.wait_for("progressing", timeout_s=60)
            (gap,) = [gap for gap in watcher.snapshot.server.missing if gap.signal == "log"]
            assert "not started as its container's own program" in gap.why
        finally:
            watcher.stop()
            container("kill")
            executed.wait()


def test_podman(podman, beside, bare):
    container = serve(podman)
    watcher = beside(container)
    ready_as_on_the_host(watcher, bare)
    server = watcher.snapshot.server
    assert server.log_path.endswith(f"{container.id}/userdata/ctr.log")
    assert f"podman container {container.id[:12]} (k8s-file)" in server.log_source


def test_podman_with_a_terminal(podman, beside, bare):
    ready_as_on_the_host(beside(serve(podman, "-t")), bare)


def test_podman_rotates(podman, beside):
    """conmon begins a new file and throws the old one away: what nobody has read by then is lost, the rest is not."""
    watcher = beside(serve(podman, "--log-opt", "max-size=8k"))
    watcher.wait_for("ready", timeout_s=120)
    assert not ALARMS & set(watcher.states()), watcher.history()
    assert ("ready", "") in kinds(watcher.snapshot.log.milestones)


def test_podman_pause_and_kill(podman, beside):
    container = serve(podman, speed=1.0)
    watcher = beside(container)
    watcher.wait_for("progressing", timeout_s=60)
    container("pause")
    said = watcher.wait_for("stopped", timeout_s=60)
    container("unpause")
    watcher.wait_for("progressing", after=said.at, timeout_s=60)
    container("kill")
    assert watcher.wait_for("crashed", timeout_s=60)
