"""The workers' probe on a fake /proc: permissions, vanishing processes, numbers used again, trees with a controller."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading

import pytest

from sgmon.collect.probes import worker as worker_module
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.discovery.tree import Members
from sgmon.model import ESSENTIAL_ROLES, Role, Server, ServerArgs
from sgmon.proc import fds, stat
from sgmon.settings import Settings
from tests.discovery.test_find import LAUNCH, SPAWN, TRACKER
from tests.proc.fake import FakeProc, mount_row


class Clock:
    """Seconds that pass when the test says so."""

    epoch = 0.0

    def __init__(self) -> None:
        self.t = 0.0

    def now(self) -> float:
        return self.t


class Scene:
    def __init__(self, tmp_path, args: ServerArgs, version: str = "0.5.23") -> None:
        self.fake = FakeProc(tmp_path)
        self.clock = Clock()
        self.watched = Watched(Settings(proc_root=str(self.fake)), self.clock)
        self.fake.add(100, LAUNCH, fds={1: "/log", 2: "/log"})
        self.watched.server = Server(100, 1000, args=args, version=version)
        self.probe = ProcsProbe(self.watched)

    def read(self):
        self.clock.t += 1
        return self.probe.read()

    def by_pid(self):
        return {p.pid: p for p in self.read().processes}


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path, ServerArgs(tp=2))
    made.fake.add(110, "sglang::scheduler_TP0", ppid=100, fds={1: "/log", 2: "/log", 5: "/dev/nvidia1"})
    made.fake.add(120, "sglang::scheduler_TP1", ppid=100, fds={2: "/other"})
    return made


def test_no_server_yet(tmp_path):
    made = Scene(tmp_path, ServerArgs())
    made.watched.server = None
    assert made.read() is None


def test_fields(scene):
    seen = scene.by_pid()
    zero = seen[110]
    assert (zero.rank, zero.rank_inferred, zero.ns_pid, zero.uid) == ("TP0", False, 1, 1000)
    assert (zero.rss_anon_bytes, zero.rss_file_bytes, zero.rss_shmem_bytes) == (102400, 20480, 4096)
    assert (zero.read_bytes, zero.rchar_bytes, zero.wait_s, zero.nvidia_fds) == (4096, 10, 0.25, (1,))
    assert zero.same_log is True and seen[120].same_log is False
    assert zero.thread_states == (("S", 1),) and zero.fd_count == 3


@pytest.mark.parametrize(
    ("name", "signal", "field"),
    [("io", "io", "read_bytes"), ("wchan", "wchan", "wchan"), ("threads", "threads", None)],
)
def test_a_refused_file_is_one_gap_and_the_rest_goes_on(scene, monkeypatch, name, signal, field):
    def refuse(root, pid, known=None, t=0.0):
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(worker_module.counters, name, refuse)
    seen = scene.by_pid()[110]
    assert [gap.signal for gap in seen.missing] == [signal] and "sudo" in seen.missing[0].remedy
    assert field is None or getattr(seen, field) is None
    assert seen.rss_anon_bytes == 102400
    monkeypatch.undo()
    scene.clock.t += 30
    assert scene.by_pid()[110].missing == ()


def test_where_a_thread_is_blocked_is_read_again_only_when_it_has_run(scene, monkeypatch):
    reads = []
    real = worker_module.counters.wchan
    monkeypatch.setattr(worker_module.counters, "wchan", lambda root, pid: reads.append(pid) or real(root, pid))
    first = scene.by_pid()[110]
    scene.clock.t += 1
    assert scene.by_pid()[110] == first and reads.count(110) == 1
    (scene.fake.root / "110" / "schedstat").write_text("1500000001 250000000 8\n")
    (scene.fake.root / "110" / "wchan").write_text("do_epoll_wait")
    scene.clock.t += 1
    assert (scene.by_pid()[110].wchan, reads.count(110)) == ("do_epoll_wait", 2)


def test_sockets_with_and_without_a_peer_in_the_tree(scene):
    """Row 1 and 2 are the two ends of one connection, row 3 leads to another machine, row 4 listens."""
    rows = [("0100007F:A9BC 0100007F:CD49 01", 71), ("0100007F:CD49 0100007F:A9BC 01", 72)]
    rows += [("0100007F:A9BE 0A000002:CD49 02", 73), ("00000000:CD49 00000000:0000 0A", 74)]
    text = "  sl\n" + "".join(
        f"   {n}: {ends} 00000000:00000000 00:00000000 0000000{n} 0 0 {inode} 1 0 20 4 30 10 -1\n"
        for n, (ends, inode) in enumerate(rows)
    )
    (scene.fake.root / "100" / "net" / "tcp").write_text(text)
    for pid, fd, inode in ((110, 7, 71), (110, 8, 73), (110, 9, 74), (120, 7, 72)):
        (scene.fake.root / str(pid) / "fd" / str(fd)).symlink_to(f"socket:[{inode}]")
    seen = scene.by_pid()
    assert sorted((peer.state, peer.peer_pid, peer.retransmits) for peer in seen[110].tcp) == [
        ("ESTAB", 120, 0),
        ("LISTEN", None, 3),
        ("SYN_SENT", None, 2),
    ]
    assert [peer.peer_pid for peer in seen[120].tcp] == [110]


def test_hidden_descriptors(scene, monkeypatch):
    def refuse(root, pid):
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(worker_module.fds, "read", refuse)
    seen = scene.by_pid()[110]
    assert seen.stdio == (None, None, None) and seen.same_log is None and seen.fd_count is None
    assert [gap.signal for gap in seen.missing] == ["fds"]


def test_refused_call(scene, monkeypatch):
    def refuse(root, pid):
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(worker_module.syscalls, "read", refuse)
    (gap,) = scene.by_pid()[110].missing
    assert gap.signal == "syscall" and "SYS_PTRACE" in gap.remedy


def test_a_sleeper_without_wchan_is_hidden_a_runner_is_not(scene):
    (scene.fake.root / "110" / "wchan").write_text("0")
    assert scene.by_pid()[110].missing == ()
    seen = scene.by_pid()[110]
    assert seen.wchan is None and [gap.signal for gap in seen.missing] == ["wchan"]
    scene.fake.add(110, "sglang::scheduler_TP0", ppid=100, state="R", wchan="0", start=1100)
    assert scene.by_pid()[110].wchan == ""


def test_a_sleeper_that_was_named_before_is_not_hidden(scene):
    """It was about to run: to say that root should come and look would be wrong, most of all to root."""
    assert scene.by_pid()[110].wchan
    for nth in range(3):
        (scene.fake.root / "110" / "wchan").write_text("0")
        (scene.fake.root / "110" / "schedstat").write_text(f"15000000{nth} 250000000 {nth}\n")
        scene.clock.t += 1
        seen = scene.by_pid()[110]
        assert seen.wchan is None and seen.missing == ()


def test_a_process_that_vanishes_in_the_middle(scene, monkeypatch):
    scene.read()
    real = worker_module.status.read

    def read(root, pid):
        if pid == 120:
            scene.fake.remove(120)
        return real(root, pid)

    monkeypatch.setattr(worker_module.status, "read", read)
    assert not scene.by_pid()[120].gone
    monkeypatch.undo()
    seen = scene.by_pid()[120]
    assert (seen.gone, seen.rank, seen.state, seen.exit_code) == (True, "TP1", "X", None)
    assert "unknown" in seen.exit_source
    assert scene.by_pid()[120].gone, "kept"


def test_proc_that_goes_in_the_middle_of_a_look_is_no_end_of_a_process(scene, monkeypatch, tmp_path):
    scene.read()
    refresh = Members.refresh

    def goes_after_it(members, forget=False):
        refresh(members, forget)
        scene.fake.root.rename(tmp_path / "away")

    monkeypatch.setattr(Members, "refresh", goes_after_it)
    with pytest.raises(FileNotFoundError):
        scene.read()
    (tmp_path / "away").rename(scene.fake.root)
    monkeypatch.undo()
    assert [(p.pid, p.alive) for p in scene.read().processes] == [(100, True), (110, True), (120, True)]


def test_a_zombie_with_its_status(scene):
    scene.read()
    scene.fake.add(120, [], comm="sglang::schedul", ppid=100, state="Z", start=1200, exit_status=6)
    seen = scene.by_pid()[120]
    assert (seen.gone, seen.exit_signal, seen.title) == (True, 6, "sglang::scheduler_TP1")
    scene.fake.remove(120)
    assert scene.by_pid()[120].exit_signal == 6


def test_a_zombie_that_was_never_seen_alive(tmp_path):
    made = Scene(tmp_path, ServerArgs(tp=2))
    made.fake.add(110, "sglang::scheduler_TP0", ppid=100)
    made.fake.add(120, [], comm="sglang::schedul", ppid=100, state="Z", exit_status=9)
    made.fake.add(130, "sglang::detokenizer", ppid=100)
    seen = made.by_pid()[120]
    assert (seen.role, seen.rank, seen.rank_inferred, seen.exit_signal) == (Role.WORKER, "TP1", True, 9)


def test_a_number_used_again_is_another_process(scene):
    scene.read()
    scene.fake.add(120, ["nginx"], ppid=1, start=99999)
    seen = scene.by_pid()[120]
    assert seen.gone and seen.title == "sglang::scheduler_TP1"


def test_the_launcher_dies_first(scene):
    scene.read()
    scene.fake.remove(100)
    scene.fake.add(110, "sglang::scheduler_TP0", ppid=1, start=1100)
    seen = scene.by_pid()
    assert seen[100].gone and seen[100].role == "launcher"
    assert not seen[110].gone and seen[110].ppid == 1 and seen[110].rank == "TP0"


def test_an_end_is_followed_by_a_look_in_between(scene):
    scene.read()
    assert scene.probe.interval_s == 1.0
    scene.fake.remove(120)
    pauses = [(scene.read(), scene.probe.interval_s)[1] for _ in range(3)]
    assert pauses == [0.3, 0.7, 1.0]
    scene.fake.remove(110)
    scene.read()
    scene.fake.remove(100)
    assert [(scene.read(), scene.probe.interval_s)[1] for _ in range(2)] == [0.3, 0.7]


def test_a_new_server_begins_anew(scene):
    scene.read()
    scene.fake.add(200, LAUNCH)
    scene.watched.server = Server(200, 2000)
    assert [p.pid for p in scene.read().processes] == [200]


def test_helpers_and_compilers(scene):
    scene.fake.add(130, ["ninja"], ppid=110, cpu_ticks=100)
    scene.fake.add(131, ["/bin/sh", "-c", "nvcc x"], ppid=130)
    scene.fake.add(132, ["/cuda/bin/cicc", "-o", "norm.ptx"], ppid=131, cpu_ticks=300)
    scene.fake.add(133, "sglang::scheduler_TP0", ppid=110)
    seen = scene.by_pid()
    assert [(c.name, c.what, c.cpu_s) for c in seen[110].compilers] == [
        ("cicc", "norm.ptx", 300 / stat.HZ),
        ("ninja", "", 100 / stat.HZ),
    ]
    assert seen[110].tree_cpu_s == 400 / stat.HZ
    assert seen[120].compilers == () and seen[100].compilers == ()
    assert seen[133].role == "other", "a fork that still carries its parent's title"
    assert 132 not in seen
    scene.fake.remove(132)
    assert [c.name for c in scene.by_pid()[110].compilers] == ["ninja"]


def test_importing_ranks_keep_their_names_when_one_dies(tmp_path):
    made = Scene(tmp_path, ServerArgs(tp=3))
    for n in range(4):
        made.fake.add(110 + n, SPAWN, ppid=100)
    seen = made.by_pid()
    assert [seen[110 + n].rank for n in range(4)] == ["TP0", "TP1", "TP2", ""]
    assert seen[113].becomes == "detokenizer" and seen[110].becomes == Role.WORKER
    made.fake.remove(110)
    seen = made.by_pid()
    assert seen[110].gone and seen[110].rank == "TP0" and seen[111].rank == "TP1"
    made.fake.add(112, "sglang::scheduler_TP2", ppid=100, start=1120)
    seen = made.by_pid()
    assert seen[112].role == Role.WORKER and not seen[112].rank_inferred and seen[112].becomes == Role.OTHER
    assert seen[111].rank == "TP1" and seen[111].rank_inferred


def test_data_parallel_with_a_controller(tmp_path):
    made = Scene(tmp_path, ServerArgs(dp=2))
    made.fake.add(110, SPAWN, ppid=100)
    made.fake.add(111, SPAWN, ppid=100)
    made.fake.add(120, SPAWN, ppid=110)
    made.fake.add(121, SPAWN, ppid=110)
    seen = made.by_pid()
    assert [seen[pid].becomes for pid in (110, 111, 120, 121)] == [
        Role.CONTROLLER,
        "detokenizer",
        Role.WORKER,
        Role.WORKER,
    ]
    assert [seen[pid].rank for pid in (120, 121)] == ["DP0", "DP1"]
    made.fake.add(110, "sglang::data_parallel_controller", ppid=100, start=1100)
    made.fake.add(121, "sglang::scheduler_DP1", ppid=110, start=1210)
    seen = made.by_pid()
    assert seen[110].role == Role.CONTROLLER and seen[121].rank == "DP1" and seen[120].rank == "DP0"


def test_another_users_zombie_hides_its_status(scene, monkeypatch):
    scene.read()
    scene.fake.add(120, [], comm="sglang::schedul", ppid=100, state="Z", start=1200)
    assert scene.by_pid()[120].exit_code == 0
    scene.fake.add(110, [], comm="sglang::schedul", ppid=100, state="Z", start=1100)
    (scene.fake.root / "110" / "io").unlink()
    seen = scene.by_pid()[110]
    assert seen.exit_code is None and "hidden" in seen.exit_source


@pytest.mark.parametrize("fstype", ["ext4", "nfs4"])
def test_model_files(tmp_path, fstype):
    model = tmp_path / "model"
    model.mkdir()
    for n in range(3):
        (model / f"model-{n}.safetensors").write_bytes(b"x" * 1000)
    (model / "config.json").write_text("{}")
    made = Scene(tmp_path, ServerArgs(model_path=str(model)))
    made.fake.add(100, LAUNCH, mounts=mount_row("/", fstype))
    made.read()
    made.probe._tree._host.model.wait(10)
    seen = made.read()
    assert seen.model_bytes == 3000


def test_model_files_in_the_hugging_face_cache(tmp_path):
    repo = tmp_path / "hub" / "models--org--m"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc")
    (repo / "snapshots" / "abc").mkdir(parents=True)
    (repo / "blobs").mkdir()
    (repo / "blobs" / "1").write_bytes(b"x" * 77)
    (repo / "snapshots" / "abc" / "model.safetensors").symlink_to(repo / "blobs" / "1")
    made = Scene(tmp_path, ServerArgs(model_path="org/m"))
    made.fake.add(100, LAUNCH, environ={"HF_HUB_CACHE": str(tmp_path / "hub")})
    made.read()
    made.probe._tree._host.model.wait(10)
    assert made.read().model_bytes == 77


def test_a_locked_memory_map_costs_one_gap_only(scene, monkeypatch):
    gate = threading.Event()
    scene.fake.add(120, "sglang::scheduler_TP1", ppid=100, state="D", start=1200)
    real = worker_module.files.read

    def read(path, *limit):
        if path.endswith("120/maps"):
            gate.wait(20)
        return real(path, *limit)

    monkeypatch.setattr(worker_module.files, "read", read)
    seen = scene.by_pid()
    gaps = {gap.signal: gap.why for gap in seen[120].missing}
    assert "locked" in gaps["maps"] and set(gaps) == {"maps", "stack"}
    assert seen[110].missing == () and seen[120].rss_anon_bytes == 102400
    gate.set()


def test_how_far_a_weight_file_is_read(tmp_path):
    """read(2) moves the position of its descriptor, which a real process is asked for."""
    weights = tmp_path / "model.bin"
    weights.write_bytes(bytes(4096))
    script = (
        "import sys; f = open(sys.argv[1], 'rb', 0); print(f.fileno(), flush=True)\n"
        "while input(): print(len(f.read(1000)), flush=True)"
    )
    command = [sys.executable, "-c", script, str(weights)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        fd = int(child.stdout.readline())
        assert fds.position("/proc", child.pid, fd) == 0
        child.stdin.write("go\n")
        assert child.stdout.readline() == "1000\n"
        assert fds.position("/proc", child.pid, fd) == 1000
        server = Server(child.pid, stat.read("/proc", child.pid).start_ticks)
        seen = ProcsProbe(Watched(Settings(), Clock(), server)).read().processes[0]
        assert [(one.fd, one.pos) for one in seen.fds if one.target == str(weights)] == [(fd, 1000)]
        child.stdin.write("\n")
    assert fds.position("/proc", child.pid, fd) is None


def test_a_zombie_python_child_is_a_worker_only_where_one_may_be_lacking(tmp_path):
    """``serve A & exec serve B``: A's zombie is a child of B's launcher, and older than all that B has spawned."""
    made = Scene(tmp_path, ServerArgs(tp=2))
    made.fake.add(105, [], ppid=100, state="Z", comm="python3", start=1001, exit_status=9)
    assert [p.role for p in made.read().processes if p.role in ESSENTIAL_ROLES] == [Role.LAUNCHER]
    made = Scene(tmp_path / "later", ServerArgs(tp=2))
    made.fake.add(105, [], ppid=100, state="Z", comm="python3", start=1001, exit_status=9)
    made.fake.add(109, TRACKER, ppid=100)
    made.fake.add(110, SPAWN, ppid=100)
    made.fake.add(120, [], ppid=100, state="Z", comm="python3", exit_status=9)
    seen = made.by_pid()
    assert 105 not in seen
    assert (seen[120].role, seen[120].becomes, seen[120].rank) == (Role.IMPORTING, Role.WORKER, "TP1")


def test_a_zombie_python_child_beside_all_that_are_expected_is_no_worker(tmp_path):
    made = Scene(tmp_path, ServerArgs())
    made.fake.add(109, TRACKER, ppid=100)
    made.fake.add(110, "sglang::scheduler", ppid=100)
    made.fake.add(120, "sglang::detokenizer", ppid=100)
    made.fake.add(130, [], ppid=100, state="Z", comm="python3", exit_status=9)
    assert [p.pid for p in made.read().processes if p.role in ESSENTIAL_ROLES] == [100, 110, 120]


def test_another_server_below_the_launcher_is_no_part_of_it(scene):
    """``serve A & exec serve B``: the shell that started A became B."""
    scene.fake.add(130, LAUNCH, ppid=100)  # just forked
    scene.read()
    scene.fake.add(130, [*LAUNCH, "--port", "31001"], ppid=100)
    scene.fake.add(140, "sglang::scheduler", ppid=130)
    assert set(scene.by_pid()) == {100, 110, 120}
    scene.fake.add(150, SPAWN, ppid=130)
    scene.fake.add(130, [], ppid=100, state="Z", comm="python")
    scene.clock.t += 70
    assert {pid for pid, process in scene.by_pid().items() if not process.gone} == {100, 110, 120}
    assert not any(process.gone for process in scene.by_pid().values())
