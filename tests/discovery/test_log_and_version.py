from __future__ import annotations

import os

import pytest

from sgmon.discovery import inner, logfile, version
from tests.proc.fake import FakeProc, mount_row

WRITE = 0o100001


def target(tmp_path, fds, mounts="", extra=None):
    fake = FakeProc(tmp_path)
    fake.add(100, ["python"], fds=fds, mounts=mounts)
    for pid, more, flags in extra or ():
        fake.add(pid, ["tee", "x"], comm="tee", fds=more, flags=flags)
    return logfile.find(inner.of(str(fake), 100)), fake


def test_stderr_wins(tmp_path):
    found, _ = target(tmp_path, {1: "/log/out", 2: "/log/err"})
    assert (found.path, found.kind) == ("/log/err", "file")
    assert found.source == "fd 2 of pid 100 (fd 1 goes elsewhere: file)"


def test_stdout_when_stderr_keeps_nothing(tmp_path):
    found, _ = target(tmp_path, {1: "/log/out", 2: "/dev/pts/3"})
    assert found.path == "/log/out"
    found, _ = target(tmp_path / "b", {1: "/dev/pts/3", 2: "/dev/pts/3"})
    assert (found.path, found.kind) == ("", "pty")
    assert found.missing is not None and "--log" in found.missing.remedy


def test_tee(tmp_path):
    reader = (200, {0: "pipe:[77]", 1: "/dev/pts/1", 2: "/dev/pts/1", 3: "/log/t"}, {3: WRITE})
    found, _ = target(tmp_path, {1: "pipe:[77]", 2: "pipe:[77]"}, extra=[(190, {0: "pipe:[78]"}, {}), reader])
    assert (found.path, found.kind) == ("/log/t", "file")
    assert found.source == "fd 1 and 2 of pid 100 -> pipe -> tee (pid 200)"


def test_a_reader_that_redirects_or_keeps_nothing(tmp_path):
    found, _ = target(
        tmp_path, {2: "pipe:[77]"}, extra=[(200, {0: "pipe:[77]", 1: "/log/c", 3: "/etc/x"}, {1: WRITE})]
    )
    assert found.path == "/log/c"
    read_only = (200, {0: "pipe:[77]", 1: "/dev/pts/1", 3: "/etc/x"}, {3: 0o100000})
    found, _ = target(tmp_path / "b", {2: "pipe:[77]"}, extra=[read_only])
    assert (found.path, found.kind) == ("", "pipe") and found.missing is not None
    found, _ = target(tmp_path / "c", {2: "pipe:[77]"})
    assert "not visible" in found.missing.why


@pytest.mark.parametrize("own", [{0: "{fifo}", 1: "/log/f"}, {0: "/dev/null", 1: "/log/f", 3: "{fifo}"}])
def test_a_named_pipe_is_followed_to_the_file_of_its_reader(tmp_path, own):
    """``prog < F > /log/f`` and ``cat F > /log/f``; a shell that keeps it open for reading and writing is no reader."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    held = {fd: to.format(fifo=fifo) for fd, to in own.items()}
    reader = (200, held, {1: WRITE, **dict.fromkeys((0, 3), 32768)})
    keeper = (190, {5: str(fifo)}, {5: 0o100002})
    found, _ = target(tmp_path / "a", {1: str(fifo), 2: str(fifo)}, extra=[keeper, reader])
    assert (found.path, found.kind, found.relay) == ("/log/f", "file", "tee (pid 200)")
    found, _ = target(tmp_path / "b", {1: str(fifo), 2: str(fifo)}, extra=[keeper])
    assert (found.path, found.kind) == ("", "pipe")
    assert found.missing is not None and f"the named pipe {fifo}" in found.missing.why


def test_the_system_log_is_asked_for_by_its_tag(tmp_path):
    """``SERVER | logger -t NAME`` in a start script, whose own output is no log."""
    fake = FakeProc(tmp_path)
    fake.add(90, ["bash", "start.sh"], fds={1: "/log/start.out"}, flags={1: WRITE})
    fake.add(100, ["python"], ppid=90, fds={1: "pipe:[7]", 2: "pipe:[7]"})
    out = {0: "pipe:[7]", 1: "/log/start.out", 3: "socket:[9]"}
    fake.add(101, ["logger", "-t", "sglang"], ppid=90, fds=out, flags={1: WRITE})
    found = logfile.find(inner.of(str(fake), 100))
    assert found.path == "" and found.missing is not None
    assert found.missing.why == "the server writes into a pipe to logger (pid 101), which sends it to the system log"
    assert "journalctl -f -n 100000 -t sglang" in found.missing.remedy


@pytest.mark.parametrize("speaking", [("own.log",), ("own.log", "other.log")])
def test_of_the_files_of_a_supervisor_the_one_with_a_servers_lines_is_the_log(tmp_path, speaking):
    """It writes a log of its own and one for each program."""
    for name in ("own.log", "other.log", "supervisord.log"):
        said = "[2026-11-30 15:00:00] server_args=ServerArgs(model_path='m')" if name in speaking else "INFO spawned"
        (tmp_path / name).write_text(f"{said}\n")
    files = {fd: str(tmp_path / name) for fd, name in enumerate(("supervisord.log", "other.log", "own.log"), start=5)}
    reader = (200, {0: "/dev/null", 4: "pipe:[77]", **files}, {4: 0o100000, 5: WRITE, 6: WRITE, 7: WRITE})
    found, _ = target(tmp_path / "a", {1: "pipe:[77]", 2: "pipe:[77]"}, extra=[reader])
    assert found.path == (str(tmp_path / "own.log") if len(speaking) == 1 else "")
    assert (found.missing is None) == (len(speaking) == 1)


def test_a_tcp_connection_names_its_other_end(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(100, ["python"], fds={1: "socket:[4711]", 2: "socket:[4711]"})
    row = "   0: 0100007F:A002 0100007F:7C21 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 20 4 30 10"
    (fake.root / "100" / "net" / "tcp").write_text(f"  sl  local_address rem_address   st\n{row}\n")
    found = logfile.find(inner.of(str(fake), 100))
    assert found.missing is not None
    assert found.missing.why == "the server writes into a TCP connection to 127.0.0.1:31777"


def test_the_kernel_of_a_notebook_reads_its_output_itself(tmp_path):
    fake = FakeProc(tmp_path)
    out = {1: "pipe:[7]", 2: "pipe:[7]", 40: "pipe:[7]"}
    fake.add(100, ["python", "-m", "ipykernel_launcher"], fds=out, flags={1: WRITE, 2: WRITE, 40: 0o100000})
    found = logfile.find(inner.of(str(fake), 100))
    assert found.missing is not None and found.missing.why.startswith("the program reads its output itself")


def test_deleted_files_are_read_on_local_disks_alone(tmp_path):
    found, fake = target(tmp_path, {1: "/log/x (deleted)", 2: "/log/x (deleted)"})
    assert (found.path, found.kind, found.inner_path) == (f"{fake}/100/fd/2", "deleted", "/log/x")
    found, _ = target(tmp_path / "b", {2: "/log/x (deleted)"}, mounts=mount_row("/", "nfs4"))
    assert found.path == "" and "nfs4" in found.missing.why


def test_sockets_and_null(tmp_path):
    assert "journalctl" in target(tmp_path, {1: "socket:[1]", 2: "socket:[1]"})[0].missing.remedy
    assert target(tmp_path / "b", {1: "/dev/null", 2: "/dev/null"})[0].kind == "null"
    assert target(tmp_path / "c", {})[0].kind == "none"


def test_another_mount_namespace(tmp_path):
    fake = FakeProc(tmp_path)
    fake.add(100, ["python"], fds={1: "/log/x", 2: "/log/x"})
    for who, number in (("self", 1), ("100", 2)):
        (fake.root / who / "ns").mkdir()
        os.symlink(f"mnt:[{number}]", fake.root / who / "ns" / "mnt")
    found = logfile.find(inner.of(str(fake), 100))
    assert (found.path, found.inner_path) == (f"{fake}/100/root/log/x", "/log/x")


def install(folder, name="sglang-0.5.23.dist-info"):
    (folder / name).mkdir(parents=True)
    return folder


def look(tmp_path, argv, environ=None, **kw):
    fake = FakeProc(tmp_path / "p")
    fake.add(100, argv, environ=environ, **kw)
    return version.find(inner.of(str(fake), 100), "sglang", tuple(argv), environ)


def test_version_of_a_venv(tmp_path):
    site = install(tmp_path / "venv/lib/python3.12/site-packages")
    seen = look(tmp_path, [f"{tmp_path}/venv/bin/python3"])
    assert (seen.number, seen.site_packages) == ("0.5.23", str(site))


def test_version_by_relative_path_and_by_path_variable(tmp_path):
    install(tmp_path / "venv/lib/python3.12/site-packages", "sglang-0.5.9.post1.dist-info")
    assert look(tmp_path / "a", ["venv/bin/python"], cwd=str(tmp_path)).number == "0.5.9.post1"
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").touch()
    environ = {"PATH": f"/nowhere:{tmp_path}/venv/bin"}
    assert look(tmp_path / "b", ["python"], environ=environ).number == "0.5.9.post1"
    assert look(tmp_path / "c", ["sglang::http_server"], environ={"VIRTUAL_ENV": f"{tmp_path}/venv"}).number


def test_version_of_the_executable_and_of_mapped_modules(tmp_path):
    site = install(tmp_path / "usr/lib/python3/dist-packages")
    assert look(tmp_path / "a", ["python"], exe=f"{tmp_path}/usr/bin/python3.11").number == "0.5.23"
    line = f"7000-8000 r-xp 0 fe:00 9 {site}/torch/_C.so\n"
    assert look(tmp_path / "b", ["x"], exe="/none/bin/python", maps=line).number == "0.5.23"


def test_source_checkouts_and_editable_installs(tmp_path):
    (tmp_path / "src/python/sglang").mkdir(parents=True)
    (tmp_path / "src/python/sglang/__init__.py").touch()
    (tmp_path / "src/python/sglang/version.py").write_text('__version__ = "0.5.24rc0"\n')
    seen = look(tmp_path / "a", ["x"], environ={"PYTHONPATH": f"{tmp_path}/src/python"}, exe="/none/bin/x")
    assert seen.number == "0.5.24rc0" and "source checkout" in seen.source
    site = install(tmp_path / "venv/lib/python3.12/site-packages")
    (site / "sglang-0.5.23.dist-info/direct_url.json").write_text(
        '{"url": "file:///src", "dir_info": {"editable": true}}'
    )
    assert "editable install from /src" in look(tmp_path / "b", [f"{tmp_path}/venv/bin/python"]).source


def test_version_on_a_network_file_system_that_answers_or_hangs(tmp_path, monkeypatch):
    install(tmp_path / "venv/lib/python3.12/site-packages")
    argv, rows = [f"{tmp_path}/venv/bin/python"], mount_row("/", "lustre")
    assert look(tmp_path / "a", argv, mounts=rows).number == "0.5.23"
    monkeypatch.setattr(inner.child, "output", lambda argv, deadline_s: None)
    assert look(tmp_path / "b", argv, mounts=rows).number == ""


def test_no_version(tmp_path):
    assert look(tmp_path, ["x"], exe="/none/bin/x", cwd="/none").number == ""
