"""Hosts for tests: namespaces of their own (network, processes, mounts, name) with an sshd each, joined by a switch.

Needs root, iproute2, util-linux and openssh-server. The watch reaches them from this machine's own network by one more
port of the switch. ``python -m tests.nodes.hosts 2`` makes two and waits.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
_PROGRAMS = ("ip", "nsenter", "unshare", "sshd", "ssh", "ssh-keygen")
_SBIN = "/usr/sbin:/sbin"


def need() -> None:
    """Skip where hosts cannot be made; with SGMON_NEED_NODES=1 that is a failure."""
    os.environ["PATH"] = f"{os.environ['PATH']}:{_SBIN}"
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    why = "namespaces need root" if os.geteuid() != 0 else ""
    if absent:
        why = f"not installed: {', '.join(absent)} (apt-get install openssh-server iproute2 util-linux)"
    elif not why and _run(["ip", "netns", "list"], check=False).returncode != 0:
        why = "network namespaces cannot be made here"
    if why and os.environ.get("SGMON_NEED_NODES"):
        pytest.fail(why)
    if why:
        pytest.skip(why)


def _run(argv: Sequence[str], check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr or done.stdout}")
    return done


def _new_network() -> int:
    """The third number of a cluster's addresses: 10.213.N.1 is this machine, 10.213.N.11 the first host. The namespace of
    its switch is made here, so that tests side by side never take the same."""
    for number in range(1, 255):
        if _run(["ip", "netns", "add", f"sgt{number}nsw"], check=False).returncode == 0:
            return number
    raise RuntimeError("254 clusters are there already")


class Host:
    """One host. pid: its first process, as this machine sees it."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster = cluster
        self.name = f"node-{'abcdefgh'[number]}"
        self.address = f"10.213.{cluster.network}.{11 + number}"
        self.namespace = f"{cluster.prefix}{number}"
        self.port = f"{cluster.prefix}p{number}"
        self.pid = 0
        self._first: subprocess.Popen[bytes] | None = None
        self._started: list[subprocess.Popen[bytes]] = []

    def begin(self) -> None:
        space, switch = self.namespace, self.cluster.switch
        _run(["ip", "netns", "add", space])
        _run(
            ["ip", "link", "add", "eth0", "netns", space, "type", "veth", "peer", "name", self.port, "netns", switch]
        )
        _run(["ip", "-n", switch, "link", "set", self.port, "master", "br0", "up"])
        _run(["ip", "-n", space, "addr", "add", f"{self.address}/24", "dev", "eth0"])
        for device in ("lo", "eth0"):
            _run(["ip", "-n", space, "link", "set", device, "up"])
        self.boot()

    def boot(self) -> None:
        """Start its first process, sshd."""
        sshd = f"{shutil.which('sshd')} -D -e -f {self.cluster.sshd_config(self)}"
        # servers find out by shared memory whether a rank is on their own machine
        names = f"mount -t tmpfs tmpfs /dev/shm; mount --bind {self.cluster.folder}/hosts /etc/hosts"
        inner = f"hostname {self.name}; {names}; mkdir -p /run/sshd; exec {sshd}"
        argv = ["ip", "netns", "exec", self.namespace, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._first = subprocess.Popen(
            [*argv, "--uts", "sh", "-c", inner],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(self.cluster.folder / f"{self.name}.sshd", "ab"),
            start_new_session=True,
        )
        self.pid = eventually(lambda: _child_of(self._first.pid))  # type: ignore[union-attr]
        eventually(self.answers, 30)

    def answers(self) -> bool:
        try:
            with socket.create_connection((self.address, 22), timeout=0.5):
                return True
        except OSError:
            return False

    def halt(self) -> None:
        """Kill all of its processes, as a machine that loses its power."""
        if self._first is not None:
            for pid in (self.pid, self._first.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self._first.wait(20)
            self._first = None

    def pause(self, pause: bool = True) -> None:
        """Stop all of its processes, as a virtual machine that is paused, or let them go on. Its network still answers."""
        for pid in self._pids():
            try:
                os.kill(pid, signal.SIGSTOP if pause else signal.SIGCONT)
            except ProcessLookupError:
                pass

    def _pids(self) -> list[int]:
        """Of all its processes, as this machine sees them."""
        space = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for folder in Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and os.readlink(folder / "ns" / "pid") == space:
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def inside(self, *argv: str) -> tuple[str, ...]:
        """The command that runs ``argv`` there."""
        return ("nsenter", "--target", str(self.pid), "--pid", "--mount", "--net", "--uts", "--", *argv)

    def start(
        self, *argv: str, output: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a program there, in a session of its own."""
        child = subprocess.Popen(
            self.inside(*argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if output is None else open(output, "ab"),
            stderr=subprocess.STDOUT if output is not None else None,
            env={**os.environ, **(env or {})},
            start_new_session=True,
            cwd="/",
        )
        self._started.append(child)
        return child

    def run(self, *argv: str) -> str:
        return _run(self.inside(*argv)).stdout

    def demo(self, scenario: str, *flags: str) -> dict[str, object]:
        """A simulated server there: pid (as the host sees it), port, log."""
        program = [sys.executable, "-m", "tui_app.cli", "demo", scenario, "--server-only", *flags]
        child = self.start(*program, env={"PYTHONPATH": str(ROOT)})
        assert child.stdout is not None
        said = child.stdout.readline()
        found: dict[str, object] = json.loads(said)
        return found

    # the link

    def cut(self, cut: bool = True) -> None:
        """Pull the cable, or put it back."""
        _run(["ip", "-n", self.cluster.switch, "link", "set", self.port, "down" if cut else "up"])

    def swallow(self, on: bool = True) -> None:
        """Drop what it would answer to the watch, without a word: the host is up, the cable is in."""
        way = f"10.213.{self.cluster.network}.1/32"
        _run(["ip", "-n", self.namespace, "route", "add" if on else "del", "blackhole", way])

    def slow(self, rate: str | None) -> None:
        """Let its link carry so much ("64kbit") in each direction; None: as much as it can."""
        for space, device in ((self.namespace, "eth0"), (self.cluster.switch, self.port)):
            _run(["ip", "netns", "exec", space, "tc", "qdisc", "del", "dev", device, "root"], check=False)
            if rate is not None:
                shape = ["tbf", "rate", rate, "burst", "4kb", "latency", "2s"]
                _run(["ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", device, "root", *shape])

    def received(self) -> int:
        """Bytes that it has sent into the network."""
        text = _run(["ip", "-n", self.namespace, "-s", "-j", "link", "show", "eth0"]).stdout
        count: int = json.loads(text)[0]["stats64"]["tx"]["bytes"]
        return count

    def end(self) -> None:
        self.halt()
        for child in self._started:
            if child.poll() is None:
                child.kill()
            child.wait(10)
            if child.stdout is not None:
                child.stdout.close()
        _run(["ip", "netns", "del", self.namespace], check=False)


def _child_of(pid: int) -> int:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(found[0]) if found else 0


class Cluster:
    """So many hosts; a context manager. via: the template that reaches them by name."""

    def __init__(self, count: int) -> None:
        self.network = _new_network()
        self.prefix = f"sgt{self.network}n"
        self.switch = f"{self.prefix}sw"
        self.wire = f"{self.prefix}w"
        self.folder = Path(tempfile.mkdtemp(prefix="sgmon-nodes-"))
        self.hosts = [Host(self, number) for number in range(count)]

    def __enter__(self) -> Cluster:
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self) -> None:
        for name in ("user", "stranger", "host"):
            _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)])
        self.write_client_config()
        names = "".join(f"{host.address} {host.name}\n" for host in self.hosts)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        _run(["ip", "-n", self.switch, "link", "add", "br0", "type", "bridge"])
        _run(["ip", "-n", self.switch, "link", "set", "br0", "up"])
        uplink = f"{self.prefix}u"
        _run(["ip", "link", "add", self.wire, "type", "veth", "peer", "name", uplink, "netns", self.switch])
        _run(["ip", "-n", self.switch, "link", "set", uplink, "master", "br0", "up"])
        _run(["ip", "addr", "add", f"10.213.{self.network}.1/24", "dev", self.wire])
        _run(["ip", "link", "set", self.wire, "up"])
        for host in self.hosts:
            host.begin()

    def __exit__(self, *_: object) -> None:
        for host in self.hosts:
            host.end()
        _run(["ip", "link", "del", self.wire], check=False)
        _run(["ip", "netns", "del", self.switch], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def via(self) -> str:
        return f"ssh -F {self.folder}/config -o BatchMode=yes -T {{}}"

    def write_client_config(self, key: str = "user", port: int = 22, known: str = "host") -> None:
        """The user's ssh_config, which names the hosts."""
        public = (self.folder / f"{known}.pub").read_text().split()[:2]
        lines = []
        for host in self.hosts:
            lines += [f"Host {host.name}", f"  HostName {host.address}", f"  Port {port}"]
        lines += ["Host *", "  User root", f"  IdentityFile {self.folder}/{key}", "  IdentitiesOnly yes"]
        lines += [f"  UserKnownHostsFile {self.folder}/known", "  StrictHostKeyChecking yes", "  LogLevel ERROR"]
        (self.folder / "config").write_text("\n".join(lines) + "\n")
        known_hosts = [f"{host.address} {' '.join(public)}" for host in self.hosts]
        (self.folder / "known").write_text("\n".join(known_hosts) + "\n")

    def sshd_config(self, host: Host) -> Path:
        path = self.folder / f"{host.name}.conf"
        shutil.copy(self.folder / "user.pub", self.folder / "authorized")
        path.write_text(
            f"ListenAddress {host.address}\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/authorized\n"
            "PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "StrictModes no\nUsePAM no\nPidFile none\n"
        )
        return path


def main() -> None:
    """By hand: make hosts, print how they are reached, and wait for a signal."""
    with Cluster(int(sys.argv[1])) as cluster:
        print(" ".join(f"--host {host.name}" for host in cluster.hosts), f"--via '{cluster.via}'", flush=True)
        while True:
            time.sleep(60)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    main()
