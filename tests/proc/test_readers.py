"""The small readers, each on text as the kernel prints it."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from sgmon.proc import cgroups, counters, fds, files, locks, maps, mounts, net, sock_diag, status
from tests.proc.fake import FakeProc, mount_row

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:A9BC 0100007F:CD49 01 00000000:00000000 00:00000000 00000000  1000        0 58370 1 0 20 4 30 10 -1
   1: 00000000:504B 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1000        0 58371 1 0 100 0 0 10 0
   2: 0100007F:A9BD 0100007F:CD49 02 00000001:00000000 01:00000331 00000004  1000        0 58372 2 0 800 0 0 1 7
   3: 0100007F:A9BE 0100007F:CD49 06 00000000:00000000 03:00000331 00000000     0        0 0 3 0
   4: broken
"""
MAPS = """\
7f00-7f10 r--p 00000000 fe:00 1 /usr/lib/libc.so.6
100000-300000 r--s 00000000 fe:00 2230572 /data/my model/model-00002-of-00004.safetensors
300000-400000 r--s 00200000 fe:00 2230572 /data/my model/model-00002-of-00004.safetensors
500000-600000 r--s 00000000 fe:00 2230573 /data/my model/model-00001-of-00004.safetensors (deleted)
700000-800000 r-xp 00000000 fe:00 9 /opt/venv/lib/python3.12/site-packages/torch/_C.so
"""
LOCKS = """\
1: FLOCK  ADVISORY  WRITE 8621 fe:00:2230572 0 EOF
1: -> FLOCK  ADVISORY  WRITE 8710 fe:00:2230572 0 EOF
1: -> FLOCK  ADVISORY  WRITE 8711 fe:00:2230572 0 EOF
2: POSIX  ADVISORY  WRITE 0 fe:00:77 0 EOF
2: -> POSIX  ADVISORY  WRITE 9000 fe:00:77 0 EOF
nonsense
"""


def test_sockets():
    rows = {row.inode: row for row in net.parse(TCP)}
    assert rows[58370].words == "ESTAB 127.0.0.1:43452 -> 127.0.0.1:52553"
    assert rows[58371].words == "LISTEN 0.0.0.0:20555" and rows[58371].rx_queue == 3
    assert (rows[58372].state, rows[58372].retransmits, rows[58372].tx_queue) == ("SYN_SENT", 4, 1)
    assert len(rows) == 3


def test_ipv6_addresses():
    assert net.address("00000000000000000000000001000000:7530") == "[::1]:30000"
    assert net.address("0000000000000000FFFF00000100007F:7530") == "127.0.0.1:30000"
    with pytest.raises(ValueError, match="address"):
        net.address("0000000000000000:7530")


def test_shards_in_maps():
    found = maps.shards(MAPS.encode(), mounts.parse(mount_row("/", "ext4") + mount_row("/data", "nfs4")))
    assert found is not None
    assert found.names == ("model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors")
    assert found.mapped_bytes == 0x400000
    assert (found.mount, found.fstype) == ("/data", "nfs4")
    assert maps.shards(b"7f00-7f10 r--p 00000000 fe:00 1 /usr/lib/libc.so.6\n") is None
    assert maps.site_packages(MAPS.encode()) == ("/opt/venv/lib/python3.12/site-packages",)


def test_lock_holders():
    rows = locks.parse(LOCKS)
    assert locks.holder(rows, 8710) == 8621 and locks.holder(rows, 8711) == 8621
    assert locks.holder(rows, 9000) is None, "a holder in another pid namespace is printed as 0"
    assert locks.holder(rows, 8621) is None


def test_mounts():
    rows = mounts.parse(
        mount_row("/", "overlay") + mount_row("/mnt/my\\040disk", "fuse.sshfs") + mount_row("/mnt", "tmpfs")
    )
    found = mounts.of_path(rows, "/mnt/my disk/x")
    assert found is not None and found.fstype == "fuse.sshfs" and found.remote
    assert mounts.of_path(rows, "/mnt/my diskette") == rows[2]
    assert not rows[0].remote
    for fstype in ("nfs", "nfs4", "lustre", "fuse", "cifs", "ceph", "9p", "virtiofs", "beegfs"):
        assert mounts.parse(mount_row("/", fstype))[0].remote, fstype


def test_status_with_and_without_memory():
    seen = status.parse(b"Name:\tx\nUid:\t0\t1000\t0\t0\nNSpid:\t3901\t1\nRssAnon:\t 12 kB\nTracerPid:\t9\n")
    assert (seen.rss_anon_bytes, seen.rss_file_bytes, seen.uid) == (12288, None, 1000)
    assert (seen.ns_pids, seen.tracer_pid) == ((3901, 1), 9)
    assert status.parse(b"") == status.Status()


def test_descriptors_that_tell():
    rows = {row.inode: row for row in net.parse(TCP)}
    table = mounts.parse(mount_row("/", "ext4") + mount_row("/net", "nfs4"))
    targets = {
        0: "/dev/null",
        1: "/var/log/x.log",
        3: "socket:[58370]",
        4: "socket:[99]",
        5: "/root/.cache/x/build.lock",
        6: "/hub/blobs/abc.incomplete",
        7: "/net/m/model-1.safetensors",
        8: "/dev/nvidia3",
        9: "/dev/nvidiactl",
    }
    notes = {f.fd: f.note for f in fds.telling(targets, rows, table)}
    assert notes == {
        3: "ESTAB 127.0.0.1:43452 -> 127.0.0.1:52553",
        5: "lock file",
        6: "download in progress",
        7: "weights, on nfs4",
        8: "GPU device",
    }
    assert fds.nvidia(targets) == (3,)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("/var/log/x.log", "file"),
        ("/var/log/x.log (deleted)", "deleted"),
        ("pipe:[12]", "pipe"),
        ("socket:[12]", "socket"),
        ("/dev/pts/3", "pty"),
        ("/dev/null", "null"),
        ("/dev/shm/log", "file"),
        ("anon_inode:[eventfd]", "other"),
        (None, "none"),
    ],
)
def test_kinds(target, kind):
    assert fds.kind(target) == kind


def test_a_descriptor_that_vanishes_is_left_out(tmp_path, monkeypatch):
    fake = FakeProc(tmp_path)
    fake.add(5, ["x"], fds={0: "/dev/null", 1: "/log"})
    real = fds.os.readlink

    def readlink(path: str) -> str:
        if path.endswith("/fd/1"):
            raise FileNotFoundError(errno.ENOENT, "gone", path)
        return real(path)

    monkeypatch.setattr(fds.os, "readlink", readlink)
    assert fds.read(str(fake), 5) == {0: "/dev/null"}
    assert fds.link(str(fake), 5, 1) is None


def test_words_for_refusals(tmp_path):
    yama = tmp_path / "sys" / "kernel" / "yama" / "ptrace_scope"
    yama.parent.mkdir(parents=True)
    yama.write_text("1\n")
    denied = PermissionError(errno.EPERM, "no")
    gap = files.missing("syscall", denied, str(tmp_path))
    assert "EPERM, ptrace_scope=1" in gap.why
    assert "sudo" in gap.remedy and "kernel.yama.ptrace_scope=0" in gap.remedy and "SYS_PTRACE" in gap.remedy
    yama.write_text("3\n")
    assert "reboot" in files.missing("syscall", denied, str(tmp_path)).remedy
    gap = files.missing("io", PermissionError(errno.EACCES, "no"), str(tmp_path))
    assert "another user" in gap.why and "sudo" in gap.remedy


def test_threads_and_io(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(5, ["x"], state="R")
    (seen,) = counters.threads(str(fake), 5)
    assert (seen.tid, seen.state, seen.cpu_s, seen.wait_s) == (5, "R", 1.5, 0.25)
    (fake.root / "5" / "task" / "6").mkdir()
    assert len(counters.threads(str(fake), 5)) == 1, "a thread that ended meanwhile"
    assert counters.io(str(fake), 5) == counters.Io(10, 4096, 0)
    (fake.root / "5" / "wchan").write_text("0")
    assert counters.wchan(str(fake), 5) == ""


def test_cgroups_v2_and_v1(tmp_path):
    for folder, texts in {
        "v2/a": {
            "cgroup.events": "populated 1\nfrozen 1\n",
            "memory.events": "oom 2\noom_kill 1\n",
            "cpu.stat": "nr_throttled 7\n",
        },
        "mem/b": {"memory.oom_control": "under_oom 0\noom_kill 3\n"},
        "frz/b": {"freezer.state": "FROZEN\n"},
    }.items():
        (tmp_path / folder).mkdir(parents=True)
        for name, text in texts.items():
            (tmp_path / folder / name).write_text(text)
    rows = mounts.parse(
        mount_row(str(tmp_path / "v2"), "cgroup2")
        + mount_row(str(tmp_path / "mem"), "cgroup", options="rw,memory")
        + mount_row(str(tmp_path / "frz"), "cgroup", options="rw,freezer")
    )
    seen = cgroups.limits(cgroups.paths("0::/a\n", rows))
    assert (seen.frozen, seen.oom_kills, seen.throttled) == (True, 1, 7)
    seen = cgroups.limits(cgroups.paths("5:memory:/b\n4:freezer:/b\n3:cpu,cpuacct:/b\n", rows))
    assert (seen.frozen, seen.oom_kills, seen.throttled) == (True, 3, None)
    (tmp_path / "frz/b/freezer.state").write_text("THAWED\n")
    assert cgroups.limits(cgroups.paths("4:freezer:/b\n", rows)).frozen is False
    assert cgroups.limits({}) == cgroups.CgroupLimits()


def test_the_state_of_a_thread_is_read_again_only_when_it_has_run(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(5, ["x"], state="S")
    folder = fake.root / "5" / "task" / "5"
    (folder / "wchan").write_text("nfs_wait_bit_killable")
    first = counters.threads(str(fake), 5)
    line = (folder / "stat").read_bytes()
    (folder / "stat").write_bytes(line.replace(b") S ", b") D "))
    known = {thread.tid: thread for thread in first}
    (again,) = counters.threads(str(fake), 5, known)
    assert again == first[0]._replace(wchan="nfs_wait_bit_killable"), "it has not run, so that it is not in state D"
    (folder / "wchan").write_text("futex_do_wait")
    assert counters.threads(str(fake), 5, {5: again}) == [again], "where it sleeps is read once"
    (folder / "schedstat").write_text("1500000001 250000000 8\n")
    assert [thread.state for thread in counters.threads(str(fake), 5, known)] == ["D"]
    (folder / "schedstat").unlink()
    assert [thread.state for thread in counters.threads(str(fake), 5, known)] == ["D"], "a kernel without it"


def test_sockets_by_netlink_are_those_of_proc():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        with server.accept()[0] as accepted:
            try:
                by_netlink = {row.inode: row for row in sock_diag.rows(sock_diag.WITH_INODE)}
            except OSError as err:
                pytest.skip(f"no inet_diag here: {err}")
            by_proc = net.table("/proc", os.getpid())
            mine = [os.fstat(each.fileno()).st_ino for each in (server, client, accepted)]
        assert by_netlink[mine[0]].backlog == 128, "the limit of an accept queue is told by netlink alone"
        assert [by_netlink[inode]._replace(backlog=None) for inode in mine] == [by_proc[inode] for inode in mine]
        port = server.getsockname()[1]
        assert [row.local for row in sock_diag.rows(sock_diag.LISTEN) if row.local.endswith(f":{port}")] == [
            f"127.0.0.1:{port}"
        ]
    assert sock_diag.shows("/proc", os.getpid()) and not sock_diag.shows("/elsewhere", os.getpid())
