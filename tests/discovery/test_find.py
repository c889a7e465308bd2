"""Finding a server in a fake /proc."""

from __future__ import annotations

import os
import threading

import pytest

from sgmon.collect.probes.base import Clock, ProbeError, Watched
from sgmon.collect.probes.server import LOOK_MOST_S, ServerProbe
from sgmon.discovery import TargetError, find, servers
from sgmon.discovery.tree import Members
from sgmon.proc import stat
from sgmon.settings import Settings
from tests.proc.fake import BOOT, FakeProc, mount_row

LAUNCH = ["/opt/v/bin/python", "-m", "sglang.launch_server", "--model-path", "m"]
SPAWN = [
    "/opt/v/bin/python",
    "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main()",
    "--multiprocessing-fork",
]


@pytest.fixture
def fake(tmp_path):
    return FakeProc(tmp_path)


def serve(fake, pid=100, port=31000, **kw):
    fake.add(pid, [*LAUNCH, "--tp", "2", "--port", str(port)], **kw)


def test_nothing(fake):
    seen = find(fake.root, Settings())
    assert seen.server is None and seen.candidates == ()
    assert "sglang.launch_server" in seen.looked_for and "among 1 process" in seen.looked_for


def test_one(fake):
    serve(fake, fds={0: "/dev/null", 1: "/var/log/s.log", 2: "/var/log/s.log"}, environ={"SGMON_DEMO_GPUS": "/tmp/g"})
    server = find(fake.root, Settings()).server
    assert server is not None
    assert (server.pid, server.start_ticks, server.args.tp, server.args.port) == (100, 1000, 2, 31000)
    assert server.started_epoch == BOOT + 1000 / os.sysconf("SC_CLK_TCK")
    assert (server.log_path, server.log_kind, server.log_source) == (
        "/var/log/s.log",
        "file",
        "fd 1 and 2 of pid 100",
    )
    assert server.simulated_gpus == "/tmp/g" and server.args_source == "command line"


def test_the_newest_of_several_and_the_choice_by_port(fake):
    serve(fake, 100, 31000)
    serve(fake, 300, 31001)
    serve(fake, 200, 31002, start=9000)
    seen = find(fake.root, Settings())
    assert [c.pid for c in seen.candidates] == [200, 300, 100]
    assert [c.port for c in seen.candidates] == [31002, 31001, 31000]
    assert seen.server is not None and seen.server.pid == 200
    chosen = find(fake.root, Settings(port=31000)).server
    assert chosen is not None and chosen.pid == 100
    none = find(fake.root, Settings(port=4))
    assert none.server is None and none.asked_port == 4 and len(none.candidates) == 3


def test_wrappers_and_a_fork_that_has_not_executed_yet(fake):
    fake.add(90, ["bash", "-c", "python -m sglang.launch_server --tp 2"])
    fake.add(91, ["/v/bin/python", "/v/bin/sgmon", "run", "--", *LAUNCH], ppid=90)
    serve(fake, 100, ppid=91)
    serve(fake, 150, ppid=100)
    seen = find(fake.root, Settings())
    assert [c.pid for c in seen.candidates] == [100]


def test_by_pid(fake):
    serve(fake, 100)
    fake.add(110, "sglang::scheduler_TP0", ppid=100)
    fake.add(120, ["ninja"], ppid=110)
    serve(fake, 200, 31001)
    for pid in (100, 110, 120):
        found = find(fake.root, Settings(pid=pid)).server
        assert found is not None and found.pid == 100


def test_by_the_pid_of_a_wrapper(fake):
    fake.add(90, ["bash", "start.sh"])
    fake.add(91, ["timeout", "60", *LAUNCH], ppid=90)
    serve(fake, 100, ppid=91)
    found = find(fake.root, Settings(pid=90)).server
    assert found is not None and found.pid == 100


def test_a_process_that_hangs_in_the_kernel_holds_nobody_up(fake, monkeypatch):
    gate = threading.Event()
    serve(fake, 100)
    fake.add(50, ["hung"], state="D")
    real = servers.stat.cmdline

    def cmdline(root, pid):
        if pid == 50:
            gate.wait(20)
        return real(root, pid)

    monkeypatch.setattr(servers.stat, "cmdline", cmdline)
    for _ in range(2):
        found = find(fake.root, Settings()).server
        assert found is not None and found.pid == 100
    gate.set()


def test_wrong_pids(fake):
    fake.add(50, ["nginx"])
    fake.add(60, "sglang::scheduler_TP0")
    with pytest.raises(TargetError, match="no process 7") as nobody:
        find(fake.root, Settings(pid=7))
    assert "waits" in nobody.value.remedy
    with pytest.raises(TargetError, match=r"50 \(nginx\) is no SGLang or vLLM server"):
        find(fake.root, Settings(pid=50))
    with pytest.raises(TargetError, match="its launcher is gone"):
        find(fake.root, Settings(pid=60))


def test_no_proc(tmp_path):
    with pytest.raises(TargetError, match="Linux"):
        find(tmp_path / "nothing", Settings())
    (tmp_path / "empty").mkdir()
    with pytest.raises(TargetError):
        find(tmp_path / "empty", Settings())


def test_the_retitled_main_of_0_5_2(fake, tmp_path):
    log = tmp_path / "s.log"
    log.write_text("[2025-09-01 00:00:00] server_args=ServerArgs(model_path='m2', tp_size=4, port=31007)\nmore\n")
    fake.add(100, "sglang::http_server/tokenizer_manager", fds={1: str(log), 2: str(log)})
    server = find(fake.root, Settings()).server
    assert server is not None
    assert (server.args.model_path, server.args.tp, server.args.port) == ("m2", 4, 31007)
    assert server.args_known and server.args_source == "server_args line of the log"
    log.write_text("")
    seen = find(fake.root, Settings(port=30000))
    assert seen.server is not None and not seen.server.args_known
    assert seen.candidates[0].port is None


def test_an_engine_in_a_script_of_ones_own(fake):
    fake.add(100, ["python3", "my_engine.py"])
    fake.add(110, "sglang::scheduler_TP0", ppid=100)
    fake.add(200, "sglang::scheduler_TP0", ppid=1)
    assert [c.pid for c in find(fake.root, Settings()).candidates] == [100]


TRACKER = ["/v/bin/python", "-c", "from multiprocessing.resource_tracker import main;main(5)"]


def test_an_engine_in_a_program_with_a_title_of_its_own(fake):
    """By its program, or by the resource tracker below it where the program may not be read."""
    fake.add(100, "acme: chat model")
    fake.add(110, "sglang::scheduler", ppid=100)
    fake.add(200, "acme: other model", exe="/gone")
    (fake.root / "200" / "exe").unlink()
    fake.add(209, TRACKER, ppid=200)
    fake.add(210, "sglang::scheduler", ppid=200)
    seen = find(fake.root, Settings())
    assert [c.pid for c in seen.candidates] == [200, 100] and seen.orphans == ()


def test_an_engine_whose_only_titled_process_is_the_detokenizer(fake):
    """It has its title before the ranks have theirs, and lives for seconds when they have ended."""
    fake.add(100, ["python3", "my_engine.py"])
    fake.add(109, SPAWN, ppid=100)
    fake.add(110, "sglang::detokenizer", ppid=100)
    seen = find(fake.root, Settings())
    assert seen.server is not None and seen.server.pid == 100 and seen.orphans == ()


@pytest.mark.parametrize(("name", "family"), [("SGLANG_RUN_ID", "sglang"), ("VLLM_WORKER_MULTIPROC_METHOD", "vllm")])
def test_a_program_of_ones_own_is_found_while_its_workers_import(fake, name, family):
    """They have no titles for up to a minute; their parent has set variables that it did not begin with."""
    fake.add(100, ["python3", "start.py"], environ={"PATH": "/bin"})
    fake.add(109, TRACKER, ppid=100)
    fake.add(110, SPAWN, ppid=100, environ={"PATH": "/bin", name: "x"})
    for settings in (Settings(), Settings(pid=100), Settings(pid=110)):
        seen = find(fake.root, settings)
        assert seen.server is not None and (seen.server.pid, seen.server.family) == (100, family)
        assert [c.pid for c in seen.candidates] == [100] and seen.orphans == ()


def test_children_of_multiprocessing_of_other_programs_are_no_server(fake):
    """Variables that the user gave are in both environments; a title blanks the parent's; init has other ones."""
    fake.add(100, ["python3", "train.py"], environ={"SGLANG_USE_CPU_ENGINE": "1"})
    fake.add(110, SPAWN, ppid=100, environ={"SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"})
    fake.add(200, "acme: training", environ={})
    fake.add(210, SPAWN, ppid=200, environ={"SGLANG_USE_CPU_ENGINE": "1"})
    fake.add(310, SPAWN, ppid=1, environ={"SGLANG_USE_CPU_ENGINE": "1"})
    fake.add(400, ["/usr/bin/runsv", "x"], exe="/usr/bin/runsv", environ={"PATH": "/bin"})
    fake.add(410, SPAWN, ppid=400, environ={"SGLANG_USE_CPU_ENGINE": "1"})
    seen = find(fake.root, Settings())
    assert seen.candidates == () and seen.orphans == ()


def test_a_parent_whose_program_is_hidden_says_neither_server_nor_orphan(fake):
    fake.add(100, "acme: chat model", exe="/gone")
    (fake.root / "100" / "exe").unlink()
    fake.add(110, "sglang::scheduler", ppid=100)
    fake.add(300, ["/usr/bin/runsv", "x"], comm="runsv", exe="/usr/bin/runsv")
    fake.add(310, "sglang::scheduler", ppid=300)
    seen = find(fake.root, Settings())
    assert seen.candidates == () and [o.pid for o in seen.orphans] == [310]


def test_a_server_below_a_shell_that_became_another_server(fake):
    """``serve A & exec serve B``: the first has the second as its parent. A fork has its parent's arguments."""
    serve(fake, 100, 31002)
    serve(fake, 101, 31001, ppid=100)
    serve(fake, 102, 31001, ppid=101)
    assert [c.pid for c in find(fake.root, Settings()).candidates] == [101, 100]
    seen = find(fake.root, Settings(port=31001))
    assert seen.server is not None and seen.server.pid == 101


def test_a_wrapper_that_has_adopted_orphans_is_no_server(fake):
    """A subreaper: what an old start has left is below it, as well as the new start."""
    fake.add(90, ["python3", "/srv/reap.py", *LAUNCH, "--port", "31180"])
    fake.add(95, "sglang::scheduler_TP0", ppid=90)
    seen = find(fake.root, Settings())
    assert seen.server is None and seen.candidates == ()
    assert [(o.pid, o.title) for o in seen.orphans] == [(95, "sglang::scheduler_TP0")]
    serve(fake, 100, ppid=90)
    fake.add(101, "sglang::scheduler_TP0", ppid=100)
    fake.add(80, ["python3", "start_all.py"])
    fake.add(85, "sglang::scheduler_TP1", ppid=80)
    serve(fake, 120, 31002, ppid=80)
    seen = find(fake.root, Settings())
    assert [c.pid for c in seen.candidates] == [120, 100]
    assert [o.pid for o in seen.orphans] == [85, 95]


def test_a_server_that_picks_its_port_is_found_by_the_port_that_it_has_open(fake):
    """``--port 0``: neither the family's usual port nor 0 is where it serves."""
    serve(fake, 100, 0, fds={7: "socket:[4242]"})
    row = (
        "   0: 0100007F:7922 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 4242 1 0 100 0 0 10 0\n"
    )
    (fake.root / "100" / "net" / "tcp").write_text(f"  sl  local_address rem_address   st\n{row}")
    serve(fake, 200, 31001)
    seen = find(fake.root, Settings(port=0x7922))
    assert seen.server is not None and (seen.server.pid, seen.server.port, seen.server.args.port) == (100, None, 0)
    assert [one.port for one in seen.candidates] == [31001, None]
    assert find(fake.root, Settings(port=30000)).server is None


def test_orphans_and_the_ports_on_which_they_listen(fake):
    fake.add(50, "sglang::tokenizer_worker:50", ppid=1, fds={7: "socket:[77]"})
    fake.add(51, "sglang::scheduler_TP0", ppid=99)  # its parent is not visible: nothing is known
    fake.add(60, ["/usr/bin/raylet"])
    fake.add(61, "sglang::scheduler_TP1", ppid=60)
    row = "   0: 00000000:7922 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1 0 20 4 30 10 -1\n"
    (fake.root / "50" / "net" / "tcp").write_text("  sl\n" + row)
    (orphan,) = find(fake.root, Settings()).orphans
    assert (orphan.pid, orphan.title, orphan.ports) == (50, "sglang::tokenizer_worker:50", (31010,))
    serve(fake, 200)
    seen = find(fake.root, Settings())
    assert seen.server.pid == 200 and [o.pid for o in seen.orphans] == [50]


def test_a_worker_whose_engine_has_died_while_their_launcher_lives_is_not_of_a_server_that_is_gone(fake):
    fake.add(100, ["python", "/bin/vllm", "serve", "m"], session=90)
    fake.add(103, "VLLM::Worker_TP0", ppid=1, session=90)
    fake.add(104, "sglang::scheduler", ppid=1, session=90)
    fake.add(105, "VLLM::Worker_TP1", ppid=1, session=80)
    assert [(o.pid, o.launcher) for o in find(fake.root, Settings()).orphans] == [
        (103, 100),
        (104, None),
        (105, None),
    ]


def test_other_servers_that_write_into_the_same_file(fake, tmp_path):
    for name in ("one.log", "two.log"):
        (tmp_path / name).write_text("")
    one, two = str(tmp_path / "one.log"), str(tmp_path / "two.log")
    serve(fake, 100, 31001, fds={1: one, 2: one})
    serve(fake, 200, 31002, fds={1: "/dev/null", 2: one})
    serve(fake, 300, 31003, fds={1: two, 2: "pipe:[1]"})
    seen = {pid: find(fake.root, Settings(pid=pid)).server for pid in (100, 200, 300)}
    assert {pid: server.log_writers for pid, server in seen.items()} == {100: (200,), 200: (100,), 300: ()}


def test_of_two_nodes_on_one_host_the_first_is_watched(fake):
    meet = ["--nnodes", "2", "--dist-init-addr", "127.0.0.1:20577"]
    fake.add(100, [*LAUNCH, *meet, "--node-rank", "0", "--port", "31000"])
    fake.add(200, [*LAUNCH, *meet, "--node-rank", "1", "--port", "31001"])
    fake.add(50, [*LAUNCH, "--nnodes", "2", "--dist-init-addr", "other:1", "--node-rank", "0"])
    seen = find(fake.root, Settings())
    assert (seen.server.pid, [c.pid for c in seen.candidates]) == (100, [200, 100, 50])


def test_a_launcher_that_has_just_ended(fake):
    fake.add(100, [], comm="python3", state="Z")
    with pytest.raises(TargetError, match=r"process 100 \(python3\) has ended"):
        find(fake.root, Settings(pid=100))


def test_config_file(fake, tmp_path):
    (tmp_path / "c.yaml").write_text("tp-size: 4\nport: 31005\napi-key: s3cret\n")
    fake.add(100, [*LAUNCH, "--config", "c.yaml", "--port", "31006"], cwd=str(tmp_path))
    server = find(fake.root, Settings()).server
    assert server is not None and (server.args.tp, server.args.port) == (4, 31006)
    assert "s3cret" not in repr(server) and "c.yaml" in server.args_source
    fake.add(100, [*LAUNCH, "--config", "c.yaml"], cwd=str(tmp_path), mounts=mount_row("/", "nfs4"))
    server = find(fake.root, Settings()).server
    assert server is not None and server.args.tp == 4, "read by a child"


def test_secrets_and_escapes_of_the_command_line(fake):
    fake.add(100, [*LAUNCH, "--api-key", "s3cret", "--served-model-name", "x\x1b[2Jy\n"])
    seen = find(fake.root, Settings())
    assert "s3cret" not in repr(seen) and "\\x1b" not in repr(seen)


def probe(fake, **kw):
    watched = Watched(Settings(proc_root=str(fake), **kw), Clock())
    return ServerProbe(watched), watched


def test_death_and_restart(fake):
    serve(fake, 100)
    server_probe, watched = probe(fake)
    first = server_probe.read()
    assert first is not None and first.server is not None and watched.server == first.server
    fake.remove(100)
    gone = server_probe.read()
    assert gone is not None and gone.gone_pid == 100 and gone.server == first.server
    assert watched.server == first.server, "the others go on reading what is left of it"
    serve(fake, 100, start=5000)
    again = server_probe.read()
    assert again is not None and again.server is not None
    assert (again.server.start_ticks, again.gone_pid) == (5000, None) and watched.server == again.server


def test_a_state_that_cannot_be_read_is_no_end_of_the_server(fake, monkeypatch):
    serve(fake, 100)
    server_probe, _ = probe(fake)
    monkeypatch.setattr(server_probe, "_pause_s", lambda *_: 0.0)
    first = server_probe.read()
    whole = (fake.root / "100" / "stat").read_bytes()
    (fake.root / "100" / "stat").write_bytes(b"100 (pyt")
    with pytest.raises(ProbeError, match="process 100 cannot be read"):
        server_probe.read()
    (fake.root / "100" / "stat").write_bytes(whole)
    again = server_probe.read()
    assert again.gone_pid is None and again.server.key == first.server.key


def test_a_member_that_could_not_be_read_is_found_at_the_next_look(fake):
    fake.add(100, LAUNCH)
    fake.add(110, ["python", "spawn"], ppid=100)
    whole = (fake.root / "110" / "stat").read_bytes()
    (fake.root / "110" / "stat").write_bytes(b"")
    members = Members(str(fake), 100, 1000)
    members.refresh()
    assert list(members.members) == [100]
    (fake.root / "110" / "stat").write_bytes(whole)
    members.refresh()
    assert list(members.members) == [100, 110]


def test_an_older_server_does_not_take_the_place_of_a_dead_one(fake):
    serve(fake, 100, 31000)
    serve(fake, 200, 31001)
    server_probe, watched = probe(fake)
    server_probe.read()
    assert watched.server is not None and watched.server.pid == 200
    fake.remove(200)
    gone = server_probe.read()
    assert gone is not None and gone.gone_pid == 200 and [c.pid for c in gone.candidates] == [100]


def test_a_newer_server_does_not_take_the_watch_away_but_is_listed_and_can_be_chosen(fake):
    serve(fake, 100, 31000)
    server_probe, watched = probe(fake)
    server_probe.read()
    serve(fake, 200, 31001)
    watched.clock._zero -= LOOK_MOST_S + 1
    seen = server_probe.read()
    assert seen.server.pid == 100 and [c.pid for c in seen.candidates] == [200, 100]
    server_probe.request(200)
    assert server_probe.read().server.pid == 200 and watched.server.pid == 200
    assert server_probe.read() is None
    fake.remove(200)
    assert server_probe.read().gone_pid == 200
    server_probe.request(100)
    chosen = server_probe.read()
    assert (chosen.server.pid, chosen.gone_pid) == (100, None)


def test_a_request_for_a_pid_that_is_no_server_is_repeated_and_leaves_the_settings_alone(fake):
    serve(fake, 100)
    server_probe, watched = probe(fake)
    server_probe.read()
    server_probe.request(77)
    for _ in range(2):
        with pytest.raises(ProbeError, match="no process 77"):
            server_probe.read()
    assert watched.settings.pid is None and watched.server.pid == 100


def test_a_zombie_launcher_is_gone(fake):
    serve(fake, 100)
    server_probe, _ = probe(fake)
    server_probe.read()
    fake.add(100, [], comm="python", state="Z", start=1000)
    gone = server_probe.read()
    assert gone is not None and gone.gone_pid == 100


def test_a_wrong_pid_is_said_by_the_probe(fake):
    server_probe, _ = probe(fake, pid=77)
    with pytest.raises(ProbeError, match="no process 77"):
        server_probe.read()


def test_members(fake):
    serve(fake, 100)
    members = Members(str(fake), 100, 1000)
    members.refresh()
    assert list(members.members) == [100]
    fake.add(120, ["cc1plus"], ppid=110)
    fake.add(110, SPAWN, ppid=100)
    fake.add(130, ["other"], ppid=1)
    members.refresh()
    assert list(members.members) == [100, 110, 120]
    fake.remove(100)
    fake.add(110, SPAWN, ppid=1)
    members.refresh()
    assert 110 in members.members, "an orphan stays a member"
    fake.add(130, ["x"], ppid=110, start=5000)
    members.refresh()
    assert 130 not in members.members, "its number was seen before"
    members.refresh(forget=True)
    assert 130 in members.members


def test_nothing_is_read_where_the_same_processes_are_listed(fake, monkeypatch):
    """On a host with thousands of processes."""
    serve(fake, 100)
    fake.add(130, ["other"], ppid=1)
    read: list[int] = []
    look = stat.read
    monkeypatch.setattr(stat, "read", lambda root, pid: read.append(pid) or look(root, pid))
    members = Members(str(fake), 100, 1000)
    members.refresh()
    read.clear()
    members.refresh()
    assert read == []
    fake.add(140, SPAWN, ppid=100)
    members.refresh()
    assert read == [140] and 140 in members.members
    members.refresh(forget=True)
    assert set(read[1:]) == {1, 130}, "those that are no members, though /proc lists the same names"
