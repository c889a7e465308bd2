"""Real processes with real titles, each in one situation, seen by the real probes."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from sgmon.model import Role
from tests.situations.tree import running
from tests.waiting import eventually

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
    pytest.mark.timeout(60),
]


def test_roles_ranks_and_output(tmp_path):
    with running(tmp_path, "--tp", "2", "1=other_log", processes=4) as tree:
        tree.needs_calls()
        found = {(p.role, p.rank): p for p in tree.read().processes}
        assert set(found) == {
            ("launcher", ""),
            (Role.WORKER, "TP0"),
            (Role.WORKER, "TP1"),
            ("detokenizer", ""),
            ("resource_tracker", ""),
        }
        log = str(tmp_path / "server.log")
        launcher, zero, one = (found["launcher", ""], found[Role.WORKER, "TP0"], found[Role.WORKER, "TP1"])
        assert tree.watched.server.log_path == log and tree.watched.server.args.tp == 2
        assert launcher.stdio[1:] == (log, log) and zero.same_log is True
        assert one.same_log is False and one.stdio[2] == str(tmp_path / "other.log")
        assert zero.title == "sglang::scheduler_TP0" and zero.comm == "sglang::schedul"
        assert zero.state == "S" and zero.call.name == "futex" and zero.call.note == "no time-out"
        assert zero.cpu_s > 0 and zero.wait_s is not None and zero.rss_anon_bytes > 1 << 20
        assert launcher.tree_cpu_s >= zero.cpu_s + one.cpu_s - 0.02
        assert not zero.missing and zero.uid == os.geteuid()


def test_importing_children_are_named_by_birth_order(tmp_path):
    with running(tmp_path, "--tp", "2", "--importing", processes=4) as tree:
        seen = [(p.rank, p.rank_inferred, p.becomes) for p in tree.read().processes if p.role == "importing"]
        assert seen == [("TP0", True, Role.WORKER), ("TP1", True, Role.WORKER), ("", False, "detokenizer")]
        assert tree.rank("TP1").pid == tree.pids["sglang::scheduler_TP1"]


def test_a_single_rank_has_no_name(tmp_path):
    with running(tmp_path, "--tp", "1", processes=3) as tree:
        assert [(p.role, p.rank) for p in tree.read().processes if p.role == Role.WORKER] == [(Role.WORKER, "")]


def test_stopped(tmp_path):
    with running(tmp_path, "--tp", "2", "1=stopped", processes=4) as tree:
        seen = tree.until("TP1", lambda p: p.state == "T")
        assert (seen.state, seen.wchan, seen.tracer_pid) == ("T", "do_signal_stop", 0)
        assert not seen.gone and tree.rank("TP0").state == "S"


@pytest.mark.parametrize(("how", "code", "number"), [("dies", None, signal.SIGKILL), ("exits", 3, None)])
def test_ended_and_not_reaped(tmp_path, how, code, number):
    with running(tmp_path, "--tp", "2", f"1={how}", processes=4) as tree:
        pid = tree.pids["sglang::scheduler_TP1"]
        end = next(p for p in _until_gone(tree, pid).processes if p.pid == pid)
        assert end.gone and (end.exit_code, end.exit_signal) == (code, number)
        assert end.exit_source == "stat of the zombie"


def _until_gone(tree, pid):
    while True:
        reading = tree.read()
        if any(p.pid == pid and p.gone for p in reading.processes):
            return reading


def test_the_time_of_an_end_after_a_single_look(tmp_path):
    """A rank may live for less than two looks, and be reaped before the second: its pidfd is open from the first on."""
    with running(tmp_path, "--tp", "2", "--importing", processes=4) as tree:
        pid = tree.rank("TP1").pid
        tree.launcher.kill()
        tree.launcher.wait()
        eventually(lambda: not Path(f"/proc/{pid}").exists())  # PR_SET_PDEATHSIG, then the reaper
        assert tree.until("TP1", lambda p: p.gone and p.exit_t is not None).exit_t is not None


def test_death_of_a_rank_and_then_of_the_launcher(tmp_path):
    with running(tmp_path, "--tp", "2", processes=4) as tree:
        one = tree.rank("TP1")
        os.kill(one.pid, signal.SIGKILL)
        seen = tree.until("TP1", lambda p: p.gone)
        assert (seen.exit_signal, seen.title, seen.role) == (9, "sglang::scheduler_TP1", Role.WORKER)
        tree.launcher.kill()
        tree.launcher.wait()
        gone = tree.server_probe.read()
        moved_on = gone.server.pid != tree.launcher.pid  # to another server that runs on this host just now
        assert gone.gone_pid == tree.launcher.pid or moved_on
        tree.until("TP0", lambda p: p.gone)  # PR_SET_PDEATHSIG
        found = {p.rank or p.role: p for p in tree.read().processes}
        assert found["launcher"].gone and found["launcher"].exit_signal in (9, None)
        assert found["TP1"].gone and found["TP1"].exit_signal == 9


def test_z_with_live_threads_is_not_dead(tmp_path):
    with running(tmp_path, "--tp", "2", "1=main_thread_ended", processes=4) as tree:
        seen = tree.until("TP1", lambda p: p.state == "Z")
        assert (seen.state, seen.gone) == ("Z", False) and seen.threads >= 2


def test_lock_waiter_and_holder(tmp_path):
    with running(tmp_path, "--tp", "2", "0=holds_lock", "1=waits_for_lock", processes=4) as tree:
        tree.needs_calls()
        seen = tree.until("TP1", lambda p: p.waits_for_lock)
        assert seen.call.name == "flock" and seen.waits_for_lock == str(tmp_path / "build.lock")
        assert seen.lock_holder == tree.pids["sglang::scheduler_TP0"]
        assert ("lock file, held", str(tmp_path / "build.lock")) in [(f.note, f.target) for f in tree.rank("TP0").fds]


def test_mute_peer(tmp_path):
    with running(tmp_path, "--tp", "2", "0=listener", "1=mute_peer", processes=4) as tree:
        tree.needs_calls()
        seen = tree.until("TP1", lambda p: p.call and p.call.name == "recvfrom")
        assert seen.call.target.startswith("ESTAB 127.0.0.1:")
        (peer,) = [p for p in seen.tcp if p.state == "ESTAB"]
        assert peer.peer_pid == tree.pids["sglang::scheduler_TP0"]
        assert {p.state for p in tree.rank("TP0").tcp} >= {"LISTEN", "ESTAB"}


def test_syn_sent(tmp_path):
    with running(tmp_path, "--tp", "2", "1=syn_sent", processes=4) as tree:
        tree.needs_calls()
        seen = tree.until("TP1", lambda p: p.call and p.call.target.startswith("SYN_SENT"))
        assert seen.call.name == "connect" and "SYN_SENT" in {p.state for p in seen.tcp}


def test_poll_with_a_time_out(tmp_path):
    with running(tmp_path, "--tp", "2", "1=polls", processes=4) as tree:
        tree.needs_calls()
        call = tree.until("TP1", lambda p: p.call and p.call.name in ("poll", "ppoll")).call
        assert call.timeout_ms is not None and 0 < call.timeout_ms <= 600_000
        assert call.fd is not None and call.target == "unix socket"


def test_compilers_below_a_rank(tmp_path):
    with running(tmp_path, "--tp", "2", "1=compiles", processes=5) as tree:
        seen = tree.until("TP1", lambda p: p.compilers and p.compilers[0].cpu_s > 0.05)
        (found,) = seen.compilers
        assert (found.name, found.what, found.pid) == ("cc1plus", "norm.cpp", tree.pids["cc1plus"])
        assert seen.tree_cpu_s == pytest.approx(found.cpu_s, abs=0.02) and tree.rank("TP0").compilers == ()
        assert found.pid not in [p.pid for p in tree.read().processes]


def test_mapped_shards(tmp_path):
    with running(tmp_path, "--tp", "2", "1=maps_shards", processes=4) as tree:
        shards = tree.until("TP1", lambda p: p.shards).shards
        assert shards.names == ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
        assert shards.mapped_bytes == 2 << 20 and shards.fstype and shards.mount
        assert tree.rank("TP0").shards is None
