"""Where the log goes, by how the server is run: the shapes of /proc as they were seen, in a folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from sgmon.discovery import docker_daemons, inner, journal, logfile, output_readers
from sgmon.discovery.containers import Container, of
from tests.proc.fake import FakeProc, mount_row

ID = "8c92ec7aea11087f97facc52fea6f8bda569fab61d29b66a6ba3034379338d69"
UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
WRITE = 0o100001
PIPES = {0: "/dev/null", 1: "pipe:[77]", 2: "pipe:[78]"}
SHIM = ["/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id", ID, "-address", "/run/containerd.sock"]
CONMON = ["/usr/bin/conmon", "--api-version", "1", "-c", ID, "-u", ID, "-r", "/usr/bin/runc", "-n", "name"]


class Host:
    """A machine: /proc, and its files below ``files``. ``server`` is pid 100."""

    def __init__(self, folder: Path) -> None:
        self.proc = FakeProc(folder)
        self.files = folder / "host"
        self.files.mkdir()

    def server(self, fds=PIPES, cgroup="0::/\n", **more) -> None:
        self.proc.add(100, ["python", "-m", "sglang.launch_server"], fds=fds, **more)
        (self.proc.root / "100" / "cgroup").write_text(cgroup)

    def write(self, path: str, text: str = "") -> Path:
        place = self.files / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def on_host(self, *pids: int) -> None:
        """These processes see the files of the host: their mount namespace is another one than ours."""
        for pid in pids:
            folder = self.proc.root / str(pid)
            (folder / "ns").mkdir(exist_ok=True)
            self.proc.link(folder / "ns" / "mnt", "mnt:[2]")
            self.proc.link(folder / "root", str(self.files))
        (self.proc.root / "self" / "ns").mkdir(exist_ok=True)
        self.proc.link(self.proc.root / "self" / "ns" / "mnt", "mnt:[1]")

    def find(self) -> logfile.LogTarget:
        return logfile.find(inner.of(str(self.proc), 100))

    def read(self) -> str:
        found = self.find()
        assert found.kind == "file", found
        return Path(found.path).read_text()


@pytest.fixture
def host(tmp_path) -> Host:
    return Host(tmp_path)


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """All programs are installed, unless a test says otherwise."""
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.mark.parametrize(
    ("cgroup", "runtime", "pod"),
    [
        (f"0::/system.slice/docker-{ID}.scope\n", "docker", ""),
        (f"4:memory:/docker/{ID}\n0::/docker/{ID}\n", "docker", ""),
        (f"0::/machine.slice/libpod-{ID}.scope/container\n", "podman", ""),
        (f"9:name=systemd:/libpod_parent/libpod-{ID}\n", "podman", ""),
        (
            f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/"
            f"cri-containerd-{ID}.scope\n",
            "containerd",
            UID,
        ),
        (f"4:memory:/kubepods/besteffort/pod{UID}/{ID}\n", "containerd", UID),
        (f"4:memory:/kubepods/pod{UID}/{ID}\n", "containerd", UID),
        (f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-{ID}.scope/container\n", "cri-o", UID),
        (f"0::/system.slice/nerdctl-{ID}.scope\n", "containerd", ""),
        (f"0::/default/{ID}\n", "containerd", ""),
    ],
)
def test_containers_by_their_control_group(host, cgroup, runtime, pod):
    host.server(cgroup=cgroup)
    assert of(str(host.proc), 100) == Container(runtime, ID, pod)


@pytest.mark.parametrize(
    "cgroup", ["0::/\n", "0::/user.slice/user-0.slice/session-3.scope\n", "", "0::/a/deadbeef\n"]
)
def test_no_container(host, cgroup):
    host.server(cgroup=cgroup)
    assert of(str(host.proc), 100) is None


def test_the_process_above_tells_more_than_the_group(host):
    host.server(cgroup=f"0::/docker/{ID}\n", ppid=60)
    host.proc.add(60, ["bash"], ppid=50)
    host.proc.add(50, SHIM, comm="containerd-shim")
    assert of(str(host.proc), 100) == Container("docker", ID, "", 50, tuple(SHIM), below=60)


# docker


def dockerd(host: Host, *argv: str, log: str = "") -> None:
    host.server(ppid=50, status="NSpid:\t100\t31\n")
    host.proc.add(50, SHIM, comm="containerd-shim")
    host.proc.add(40, ["dockerd", *argv], comm="dockerd", fds={29: log} if log else {})
    host.on_host(40)


def config(host: Host, driver: str, root: str = "/var/lib/docker") -> str:
    folder = f"{root}/containers/{ID}"
    host.write(f"{folder}/hostconfig.json", json.dumps({"LogConfig": {"Type": driver, "Config": {}}}))
    return f"{folder}/{ID}-json.log"


def test_docker_by_what_its_daemon_has_open(host):
    path = config(host, "json-file", "/data/docker")
    host.write(path, "text")
    dockerd(host, log=path)
    assert host.read() == "text"
    found = host.find()
    assert found.source == f"fd 2 of pid 100 -> pipe -> docker container {ID[:12]} (json-file)"
    assert found.inner_path == path


@pytest.mark.parametrize(
    ("argv", "daemon_json"),
    [
        (["--data-root", "/data"], {}),
        (["--data-root=/data"], {}),
        (["-g", "/data"], {}),
        ([], {"data-root": "/data"}),
    ],
)
def test_docker_by_its_data_root(host, argv, daemon_json):
    host.write("/etc/docker/daemon.json", json.dumps(daemon_json))
    host.write(config(host, "json-file", "/data"), "text")
    dockerd(host, *argv)
    assert host.read() == "text"


def test_a_machine_with_two_docker_daemons(host):
    """The container's folder is below the root of one of them; that one is asked, also by its own socket."""
    config(host, "json-file", "/one")
    host.write("/one/containers/other/hostconfig.json")
    shutil.move(host.files / "one" / "containers" / ID, host.files / "elsewhere")
    config(host, "local", "/two")
    dockerd(host, "--data-root", "/one", "-H", "unix:///run/one.sock")
    host.proc.add(41, ["dockerd", "--data-root", "/two", "-H", "unix:///run/two.sock"], comm="dockerd")
    host.on_host(40, 41)
    host.write("/run/two.sock")
    assert host.find().command[:3] == ("docker", "--host", "unix:///run/two.sock")


def test_two_docker_daemons_whose_files_are_hidden(host):
    """The containerd above the container tells whose it is."""
    dockerd(host, "--exec-root", "/run/one", "-H", "unix:///run/one.sock")
    host.proc.add(
        41, ["dockerd", "--containerd", "/run/containerd.sock", "-H", "unix:///run/two.sock"], comm="dockerd"
    )
    host.on_host(40, 41)
    host.write("/run/two.sock")
    assert host.find().command[:3] == ("docker", "--host", "unix:///run/two.sock")


def test_a_daemons_configuration_is_read_once_a_look(host, monkeypatch):
    host.write("/etc/docker/daemon.json", json.dumps({"data-root": "/data"}))
    dockerd(host)
    asked = []
    read = docker_daemons.settings
    monkeypatch.setattr(docker_daemons, "settings", lambda at, path: (asked.append(path), read(at, path))[1])
    host.find()
    assert asked.count("/etc/docker/daemon.json") == 1


def test_dockers_journald_driver(host):
    config(host, "journald")
    dockerd(host)
    found = host.find()
    assert found.command[-1] == f"CONTAINER_ID_FULL={ID}" and found.command[0] == "journalctl"
    assert "(journald)" in found.source and found.kind == "command"


@pytest.mark.parametrize("driver", ["local", "fluentd", "awslogs"])
def test_drivers_that_docker_logs_reads(host, driver, monkeypatch):
    config(host, driver)
    dockerd(host, "-H", "unix:///run/other.sock")
    host.write("/run/other.sock")
    found = host.find()
    assert found.command == (
        "docker", "--host", "unix:///run/other.sock", "logs", "--follow", "--tail", "100000", ID
    )  # fmt: skip
    assert found.source.endswith(f"({driver})")


def test_docker_keeps_nothing(host):
    config(host, "none")
    dockerd(host)
    found = host.find()
    assert not found.command and "keeps no log" in found.missing.why and "json-file" in found.missing.remedy


def test_docker_without_rights(host):
    """Neither the files nor the socket: the exact command."""
    dockerd(host)
    found = host.find()
    assert (found.path, found.command, found.kind) == ("", (), "pipe")
    assert f"sudo docker logs --follow --tail 100000 {ID[:12]} 2>&1 | sgmon --log -" in found.missing.remedy


def test_docker_is_not_installed(host, monkeypatch):
    config(host, "local")
    dockerd(host)
    host.write("/var/run/docker.sock")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = host.find()
    assert "not installed" in found.missing.why and "docker logs" in found.missing.remedy


def test_a_server_started_by_docker_exec(host):
    """Another pipe than the container's own: the container's log is not its log."""
    host.write(config(host, "json-file"), "of the first process")
    dockerd(host)
    host.proc.add(101, ["sleep", "1000"], ppid=50, fds={1: "pipe:[7]", 2: "pipe:[8]"}, status="NSpid:\t101\t1\n")
    found = host.find()
    assert not found.path and "container's own program" in found.missing.why


# podman


def podman(host: Host, *log: str, fds=PIPES) -> None:
    words = [word for each in log for word in ("-l", each)]
    host.server(fds, ppid=50)
    host.proc.add(50, [*CONMON, *words, "--exit-command-arg", "-l"], comm="conmon")
    host.on_host(50)


def test_podmans_file(host):
    host.write("/var/lib/containers/storage/x/ctr.log", "text")
    podman(host, "k8s-file:/var/lib/containers/storage/x/ctr.log")
    assert host.read() == "text"
    assert host.find().source == f"fd 2 of pid 100 -> pipe -> podman container {ID[:12]} (k8s-file)"


def test_podman_with_two_drivers_and_a_terminal(host):
    host.write("/x/ctr.log", "text")
    podman(host, "journald:", "json-file:/x/ctr.log", fds=dict.fromkeys((0, 1, 2), "/dev/pts/0"))
    assert host.read() == "text" and "terminal -> podman" in host.find().source


def test_podmans_journald(host):
    podman(host, "journald")
    assert host.find().command[-1] == f"CONTAINER_ID_FULL={ID}"


def test_podman_keeps_nothing(host):
    podman(host, "none")
    assert "keeps no log" in host.find().missing.why


def test_podman_by_its_group_alone(host):
    host.server(cgroup=f"0::/machine.slice/libpod-{ID}.scope/container\n")
    assert host.find().command == ("podman", "logs", "--follow", "--tail", "100000", ID)


# Kubernetes


def pod(host: Host, runtime: str = "cri-containerd") -> None:
    host.server(
        cgroup=f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/{runtime}-{ID}.scope\n", ppid=50
    )
    argv = [*SHIM[:2], "k8s.io", *SHIM[3:]]
    host.proc.add(50, argv, comm="containerd-shim")
    host.on_host(50)


def test_the_kubelets_links(host):
    """/var/log/containers -> /var/log/pods, by absolute links that lead astray outside of the host's files."""
    folder = f"/var/log/pods/ns_sglang-0_{UID}/server"
    host.write(f"{folder}/2.log", "text")
    link_to = host.files / "var/log/containers"
    link_to.mkdir(parents=True)
    (link_to / f"sglang-0_ns_server-{ID}.log").symlink_to(f"{folder}/2.log")
    pod(host)
    assert host.read() == "text"
    assert host.find().inner_path == f"{folder}/2.log"


def test_a_pod_without_links(host):
    folder = f"/var/log/pods/ns_sglang-0_{UID}/server"
    for name in ("0.log", "9.log", "10.log", "10.log.20260101-101112", "1.log.gz"):
        host.write(f"{folder}/{name}", name)
    pod(host)
    assert host.read() == "10.log"


def test_a_pod_with_several_containers(host):
    for name in ("server", "sidecar"):
        host.write(f"/var/log/pods/ns_sglang-0_{UID}/{name}/0.log", name)
    pod(host)
    found = host.find()
    assert "/sidecar/0.log" in found.missing.why and f"crictl logs -f {ID[:12]}" in found.missing.remedy


def test_cri_o(host):
    host.write("/var/log/pods/x/0.log", "text")
    host.server(cgroup=f"0::/kubepods.slice/crio-{ID}.scope\n", ppid=50)
    argv = [*CONMON, "-b", "/run/containers/storage/crio/x", "-l", "/var/log/pods/x/0.log"]
    host.proc.add(50, argv, comm="conmon")
    host.on_host(50)
    assert host.read() == "text" and "cri-o container" in host.find().source


def test_nerdctl(host):
    host.write(f"/var/lib/nerdctl/1935db59/containers/default/{ID}/{ID}-json.log", "text")
    host.server(cgroup=f"0::/system.slice/nerdctl-{ID}.scope\n", ppid=50)
    host.proc.add(50, [*SHIM[:2], "default", *SHIM[3:]], comm="containerd-shim")
    host.on_host(50)
    assert host.read() == "text"


def test_without_the_right_to_read(host, monkeypatch):
    """The command of somebody who may ask Kubernetes instead."""
    folder = f"/var/log/pods/ns_sglang-0_{UID}/server"
    host.write(f"{folder}/0.log", "text")
    links = host.files / "var/log/containers"
    links.mkdir(parents=True)
    (links / f"sglang-0_ns_server-{ID}.log").symlink_to(f"{folder}/0.log")
    pod(host)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = host.find()
    assert not found.path and "may not read" in found.missing.why
    assert "kubectl logs -f -n ns sglang-0 -c server 2>&1 | sgmon --log -" in found.missing.remedy


# inside of the container


def inside(host: Host, monkeypatch, *markers: str) -> None:
    """sgmon and the server in one container: pid 1 has the same pipes, and nobody else is there."""
    host.proc.add(1, ["tini"], ppid=0, start=1, comm="tini", fds=PIPES)
    row = f"25 1 8:1 /var/lib/docker/containers/{ID}/resolv.conf /etc/resolv.conf rw - ext4 /dev/vda rw\n"
    host.server(mounts=mount_row("/", "overlay") + row)
    monkeypatch.setattr(inner.Inside, "has", lambda self, path: path in markers)


@pytest.mark.parametrize(
    ("marker", "command"),
    [("/.dockerenv", f"docker logs -f {ID[:12]}"), ("/run/.containerenv", f"podman logs -f {ID[:12]}")],
)
def test_from_inside(host, monkeypatch, marker, command):
    inside(host, monkeypatch, marker)
    found = host.find()
    assert "outside of this container" in found.missing.why
    assert f"{command} 2>&1 | sgmon --log -" in found.missing.remedy


def test_from_inside_a_pod(host, monkeypatch):
    inside(host, monkeypatch)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(inner.Inside, "text", lambda self, path, limit=0: "serving\n")
    assert f"kubectl logs -f -n serving {os.uname().nodename} 2>&1" in host.find().missing.remedy


# systemd


@pytest.mark.parametrize(
    ("cgroup", "match"),
    [
        ("0::/system.slice/sglang.service\n", "_SYSTEMD_UNIT=sglang.service"),
        ("1:name=systemd:/system.slice/sglang@a.service\n0::/\n", "_SYSTEMD_UNIT=sglang@a.service"),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/sglang.service\n",
            "_SYSTEMD_USER_UNIT=sglang.service",
        ),
        ("0::/system.slice/sglang.service/workers\n", "_SYSTEMD_UNIT=sglang.service"),
    ],
)
def test_systemd(host, cgroup, match):
    host.server({1: "socket:[5]", 2: "socket:[5]"}, cgroup)
    found = host.find()
    assert found.command[0] == "journalctl" and found.command[-1] == match
    assert {"--follow", "--output=json", "--all", "--no-tail"} <= set(found.command)
    assert "--since=@1795000009" in found.command  # it started 10 s after boot: its own lines only
    assert found.source == f"fd 1 and 2 of pid 100 -> journal of {match.partition('=')[2]}"


def test_a_unit_that_was_restarted(host, monkeypatch, tmp_path):
    """Seen with systemctl restart: "SIGTERM received" of the run before, a second ago, was taken for this one's end."""
    monkeypatch.setattr(journal, "UNITS", str(tmp_path))
    host.server({1: "socket:[5]", 2: "socket:[5]"}, "0::/system.slice/sglang.service\n")
    run = tmp_path / "invocation:sglang.service"
    run.symlink_to("18f3c0e7cd664d03b1244b8a699abdd2")
    for made_epoch, known in ((1795000009.5, True), (1795000100.0, False)):  # the server began at 1795000010
        os.utime(run, (made_epoch, made_epoch), follow_symlinks=False)
        assert ("_SYSTEMD_INVOCATION_ID=18f3c0e7cd664d03b1244b8a699abdd2" in host.find().command) is known


def test_a_systemd_in_a_container(host):
    """Seen with podman --systemd=always: the log was taken for the container's own, which had nothing."""
    group = (
        f"1:name=systemd:/libpod_parent/libpod-{ID}/system.slice/sglang.service\n3:cpu:/libpod_parent/libpod-{ID}\n"
    )
    host.server({1: "socket:[5]", 2: "socket:[5]"}, group)
    assert host.find().command[-1] == "_SYSTEMD_UNIT=sglang.service"
    host.on_host(100)
    assert not host.find().command, "seen from the host: its own journalctl has another journal"
    assert "sglang.service" in host.find().missing.why and ID[:12] in host.find().missing.why


def test_a_socket_of_a_login_session(host):
    host.server({1: "socket:[5]", 2: "socket:[5]"}, "0::/user.slice/user-0.slice/session-3.scope\n")
    assert not host.find().command and "journalctl _PID=100" in host.find().missing.remedy
    host.server({1: "socket:[5]", 2: "socket:[5]"}, "0::/user.slice/user-0.slice/user@0.service/init.scope\n")
    assert not host.find().command


def test_systemd_without_journalctl(host, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    host.server({1: "socket:[5]", 2: "socket:[5]"}, "0::/system.slice/sglang.service\n")
    assert "_SYSTEMD_UNIT=sglang.service" in host.find().missing.remedy


# Slurm


def test_slurm_writes_the_file_itself(host):
    out = host.write("/slurm-7.out", "text")
    host.server({1: str(out), 2: str(out)})
    assert host.read() == "text"


@pytest.mark.parametrize("cgroup", ["0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", "0::/\n"])
def test_slurm_through_srun(host, cgroup):
    """slurmstepd has the pipe; srun on this node (the job's first) writes what all tasks say."""
    out = host.write("/slurm-7.out", "0: text")
    host.server(cgroup=cgroup, environ={"SLURM_JOB_ID": "7"})
    for pid, job, target in ((200, "8", "/other"), (201, "7", str(out))):
        host.proc.add(pid, ["srun"], comm="srun", fds={1: target}, environ={"SLURM_JOB_ID": job})
    assert host.read() == "0: text"
    assert host.find().source == "fd 2 of pid 100 -> pipe -> Slurm job 7"


def test_slurm_on_another_node(host):
    host.server(environ={"SLURM_JOB_ID": "7"})
    assert "scontrol show job 7" in host.find().missing.remedy


# Ray


def test_ray_writes_a_file_for_each_worker(host):
    """worker-WORKER-JOB-PID.out and .err: stderr has the log."""
    session = "/tmp/ray/session_2026-01-02_03-04-05_6_7/logs"
    err = host.write(f"{session}/worker-ab-01000000-100.err", "text")
    out = host.write(f"{session}/worker-ab-01000000-100.out")
    host.server({1: str(out), 2: str(err)})
    assert host.read() == "text"


# one hop on


def test_ts_and_tee(host):
    out = host.write("/f", "text")
    host.server({1: "pipe:[77]", 2: "pipe:[77]"})
    host.proc.add(200, ["ts"], comm="ts", fds={0: "pipe:[77]", 1: "pipe:[80]", 2: "/dev/pts/0"})
    tee = {0: "pipe:[80]", 1: "/dev/pts/0", 3: str(out)}
    host.proc.add(201, ["tee", "f"], comm="tee", fds=tee, flags={3: WRITE})
    assert host.read() == "text"
    assert host.find().source == "fd 1 and 2 of pid 100 -> pipe -> ts (pid 200) -> pipe -> tee (pid 201)"


def test_what_the_reader_has_from_the_start_script_is_not_the_log(host):
    """Its complaints (2), and what was open before it began: the output of the script, and a lock of it."""
    out = host.write("/f", "text")
    host.server({1: "pipe:[77]", 2: "pipe:[77]"})
    script = {1: "/start.out", 2: "/start.out", 9: "/run/start.lock"}
    host.proc.add(90, ["bash", "start.sh"], comm="bash", fds=script)
    host.proc.add(200, ["ts"], comm="ts", ppid=90, fds={**script, 0: "pipe:[77]", 1: "pipe:[80]"}, flags={2: WRITE})
    rotating = {**script, 0: "pipe:[80]", 3: str(out)}
    host.proc.add(
        201, ["rotatelogs", "f"], comm="rotatelogs", ppid=90, fds=rotating, flags=dict.fromkeys(rotating, WRITE)
    )
    assert host.read() == "text"


def test_a_reader_whose_output_is_that_of_its_subshell(host):
    """``server | (flock 9; cat) > FILE``"""
    out = host.write("/f", "text")
    host.server({1: "pipe:[77]", 2: "pipe:[77]"})
    host.proc.add(90, ["bash"], comm="bash", fds={1: str(out), 9: "/run/lock"})
    fds = {0: "pipe:[77]", 1: str(out), 9: "/run/lock"}
    host.proc.add(200, ["cat"], comm="cat", ppid=90, fds=fds, flags={1: WRITE, 9: WRITE})
    assert host.read() == "text"


def test_a_ring_of_pipes_ends(host):
    host.server({1: "pipe:[77]", 2: "pipe:[77]"})
    host.proc.add(200, ["a"], comm="a", fds={0: "pipe:[77]", 1: "pipe:[80]"})
    host.proc.add(201, ["b"], comm="b", fds={0: "pipe:[80]", 1: "pipe:[77]"})
    assert "writes no file" in host.find().missing.why


def test_a_pipeline_inside_of_a_container(host):
    """python ... | tee FILE in the container: a file there, not the container's log."""
    host.write("/srv/f", "text")
    host.server(cgroup=f"0::/docker/{ID}\n", ppid=99, status="NSpid:\t100\t7\n")
    own = {0: "/dev/null", 1: "pipe:[90]", 2: "pipe:[91]"}
    host.proc.add(99, ["sh", "-c", "..."], comm="sh", ppid=50, fds=own, status="NSpid:\t99\t1\n")
    host.proc.add(50, SHIM, comm="containerd-shim")
    tee = {0: "pipe:[78]", 1: "pipe:[90]", 3: "/srv/f"}
    host.proc.add(201, ["tee", "f"], comm="tee", fds=tee, flags={3: WRITE})
    host.on_host(100, 201)
    assert host.read() == "text" and host.find().inner_path == "/srv/f"


def test_a_supervisor_reads_the_pipe_on_another_descriptor(host):
    out = host.write("/var/log/sglang.log", "text")
    host.server({1: "pipe:[77]", 2: "pipe:[77]"})
    reads = {0: "/dev/null", 5: "pipe:[77]", 7: str(out)}
    host.proc.add(200, ["supervisord"], comm="supervisord", fds=reads, flags={5: 0o100000, 7: WRITE})
    assert host.read() == "text"
    host.proc.add(
        200,
        ["supervisord"],
        comm="supervisord",
        fds={**reads, 8: "/var/log/b.log"},
        flags={5: 0o100000, 7: WRITE, 8: WRITE},
    )
    found = host.find()
    assert "writes 2 files" in found.missing.why and "/var/log/b.log" in found.missing.remedy


def master(host: Host, pid: int, name: str, index: int, fds=None, flags=None) -> None:
    host.proc.add(pid, [name], comm=name, fds={5: "/dev/ptmx", **(fds or {})}, flags=flags)
    (host.proc.root / str(pid) / "fdinfo" / "5").write_text(f"pos:\t0\nflags:\t02\ntty-index:\t{index}\n")


def test_script(host):
    out = host.write("/typescript", "text")
    host.server(dict.fromkeys((0, 1, 2), "/dev/pts/4"))
    master(host, 200, "script", 3, {6: "/elsewhere"}, {6: WRITE})
    master(host, 201, "script", 4, {6: str(out)}, {6: WRITE})
    assert host.read() == "text"
    assert host.find().source == "fd 1 and 2 of pid 100 -> terminal -> script (pid 201)"


def test_tmux_pipe_pane(host):
    out = host.write("/pane.log", "text")
    host.server(dict.fromkeys((0, 1, 2), "/dev/pts/4"))
    master(host, 200, "tmux: server", 4)
    host.proc.add(210, ["sh", "-c", "cat >> /pane.log"], comm="sh", ppid=200, fds={0: "socket:[9]"})
    host.proc.add(211, ["cat"], comm="cat", ppid=210, fds={0: "socket:[9]", 1: str(out)}, flags={1: WRITE})
    assert host.read() == "text" and "cat (pid 211)" in host.find().source
    host.proc.add(212, ["cat"], comm="cat", ppid=200, fds={0: "socket:[8]", 1: "/other.log"}, flags={1: WRITE})
    found = host.find()
    assert not found.path and "/other.log" in found.missing.remedy


def test_a_terminal_that_nobody_keeps(host):
    host.server(dict.fromkeys((0, 1, 2), "/dev/pts/4"))
    master(host, 200, "sshd", 4, {6: "/var/log/x"}, {6: WRITE})
    assert host.find().kind == "pty" and "keeps nothing" in host.find().missing.why


def test_readers_that_are_hidden(host, monkeypatch):
    host.server({1: "pipe:[77]", 2: "pipe:[77]"})
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "sudo" in host.find().missing.remedy
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "sudo" not in host.find().missing.remedy and "--log-command" in host.find().missing.remedy


def test_a_reader_that_ends_meanwhile(host, monkeypatch):
    host.server({1: "pipe:[77]", 2: "pipe:[77]"})
    host.proc.add(200, ["tee"], comm="tee", fds={0: "pipe:[77]"})
    monkeypatch.setattr(output_readers, "_reader", lambda root, pid: (_ for _ in ()).throw(ProcessLookupError(3, "")))
    assert host.find().kind == "pipe"


def test_links_in_another_mount_namespace(host):
    host.write("/opt/real/x", "text")
    (host.files / "opt" / "link").symlink_to("/opt/real")
    (host.files / "opt" / "up").symlink_to("../opt/link/x")
    (host.files / "opt" / "ring").symlink_to("/opt/ring")
    host.server()
    host.on_host(100)
    seen = inner.of(str(host.proc), 100)
    assert seen.text("/opt/link/x") == seen.text("/opt/up") == seen.text("/opt/./real/../link/x") == "text"
    assert seen.text("/opt/ring") == "" and seen.listing("/opt/link") == ["x"]


def test_an_output_that_is_hidden_is_not_called_none(host, monkeypatch):
    def refused(root, pid, fd):
        raise PermissionError(13, "no")

    host.server({1: "/f", 2: "/f"})
    monkeypatch.setattr(logfile.fds, "link", refused)
    assert host.find().kind == "hidden" and "another user" in host.find().missing.why
