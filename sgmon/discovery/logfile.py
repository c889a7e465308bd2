"""Where the server's output goes: the file behind its descriptors 2 and 1, the file that whoever reads them writes,
the command that prints it, or why there is none to read."""

from __future__ import annotations

import os
import shlex
from stat import S_ISFIFO
from typing import NamedTuple

from sgmon.discovery import container_logs, containers, inner, journal, output_readers, slurm, system_log
from sgmon.discovery.inner import Inside
from sgmon.discovery.logtarget import GIVE_LOG, LogTarget, by_command, by_hand, unread
from sgmon.discovery.output_readers import Reader
from sgmon.discovery.version import started_epoch
from sgmon.model import Missing
from sgmon.patterns import regex
from sgmon.proc import fds, files, mounts, net, stat
from sgmon.servers import registry
from sgmon.text import without_suffix

_MOST_HOPS = 6  # SERVER | ts | grep | tee FILE
_MOST_FILES = 8  # of one reader, whose beginnings are read to find the server's
_CONTAINER_FOLDER = regex(r"containers/([0-9a-f]{12})[0-9a-f]{52}/")
_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


class _Hop(NamedTuple):
    """A descriptor on the way of the output. ``source``: the way up to here, in words."""

    inside: Inside
    fd: int
    target: str
    source: str
    hops: int = 0

    @property
    def root(self) -> str:
        return self.inside.root

    @property
    def place(self) -> str:
        """What the descriptor is: "pipe", "terminal", "socket"."""
        kind = fds.kind(self.target)
        return "terminal" if kind == "pty" else kind

    @property
    def pid(self) -> int:
        return self.inside.pid


def find(inside: Inside) -> LogTarget:
    """SGLang logs to stderr and prints access lines to stdout (srt/utils ``configure_logger``; uvicorn): 2 wins."""
    try:
        out = fds.link(inside.root, inside.pid, 1)
        err = fds.link(inside.root, inside.pid, 2)
    except OSError as error:
        return LogTarget(kind="hidden", missing=_hidden(error, inside.root))
    if err is None and out is None:
        return LogTarget(source=f"fd 1 and 2 of pid {inside.pid} are closed")
    same = err == out
    fd, target = (2, err) if err is not None else (1, out)
    if not same and fds.kind(err) not in ("file", "deleted", "pipe") and fds.kind(out) in ("file", "deleted", "pipe"):
        fd, target = 1, out
    which = f"fd 1 and 2 of pid {inside.pid}" if same else f"fd {fd} of pid {inside.pid}"
    if not same and (fds.kind(out), fds.kind(err)) != ("pipe", "pipe"):  # a container has a pipe for each
        other = 3 - fd
        which += f" (fd {other} goes elsewhere: {fds.kind(out if other == 1 else err)})"
    return _follow(_Hop(inside, fd, target or "", which))


def _follow(hop: _Hop) -> LogTarget:
    kind = fds.kind(hop.target)
    if kind == "file" and _is_named_pipe(hop):
        return _named_pipe(hop)
    if kind == "file":
        return _file(hop.inside, hop.target, hop.source)
    if kind == "deleted":
        return _deleted(hop)
    if kind == "pipe":
        return _piped(hop)
    if kind == "pty":
        return _terminal(hop)
    if kind == "socket":
        return _socket(hop)
    goes = "/dev/null" if kind == "null" else hop.target
    remedy = f"start it with its output in a file; or {GIVE_LOG}"
    return unread(kind, hop.source, f"the server's output goes to {goes}", remedy)


def _file(inside: Inside, path: str, source: str) -> LogTarget:
    return LogTarget(inside.prefix + path, "file", source, path if inside.prefix else "")


def _is_named_pipe(hop: _Hop) -> bool:
    try:
        return not hop.inside.remote(hop.target) and S_ISFIFO(os.stat(f"{hop.root}/{hop.pid}/fd/{hop.fd}").st_mode)
    except OSError:
        return False


def _named_pipe(hop: _Hop) -> LogTarget:
    """mkfifo: what reads it has it on descriptor 0 (``prog < F``) or on another one (``cat F``)."""
    reader = output_readers.of_pipe(hop.root, hop.pid, hop.target)
    reader = reader or output_readers.anywhere(hop.root, hop.pid, hop.target)
    if reader is not None:
        return _of_reader(hop, reader)
    why = f"the server writes into the named pipe {hop.target}, and its reader is not visible"
    return unread("pipe", hop.source, why, f"{GIVE_LOG}, or --log-command with what prints it")


def _deleted(hop: _Hop) -> LogTarget:
    """A deleted file lives on behind the descriptor; it is opened there only when its file system is a local one."""
    inner_path = without_suffix(hop.target, " (deleted)")
    mount = mounts.of_path(hop.inside.rows, inner_path)
    if mount is None or mount.remote:
        where = mount.fstype if mount else "an unknown file system"
        why = f"the log file was deleted, and lies on {where}, where a read may hang"
        return LogTarget("", "deleted", hop.source, inner_path, Missing("log", why, GIVE_LOG))
    path = f"{hop.root}/{hop.pid}/fd/{hop.fd}"
    return LogTarget(path, "deleted", f"{hop.source}, file deleted: {inner_path}", inner_path)


def _piped(hop: _Hop) -> LogTarget:
    """A container's runtime, when it is known to read this pipe; the next program of the pipeline; else the runtime,
    Slurm, or whoever has the reading end."""
    container = containers.of(hop.root, hop.pid)
    if container is not None and containers.keeps(hop.root, container, hop.target):
        return container_logs.find(hop.root, container, f"{hop.source} -> {hop.place}")
    reader = output_readers.of_pipe(hop.root, hop.pid, hop.target)
    if reader is not None:
        return _of_reader(hop, reader)
    kept = _kept(hop)
    if kept is not None:
        return kept
    reader = output_readers.anywhere(hop.root, hop.pid, hop.target)
    if reader is None and output_readers.reads_itself(hop.root, hop.pid, hop.target):
        why = "the program reads its output itself, as the kernel of a notebook does, and keeps it in no file"
        return unread("pipe", hop.source, why, GIVE_LOG)
    if reader is None:
        return _nobody(hop)
    source = f"{hop.source} -> pipe -> {reader.name} (pid {reader.pid})"
    if len(reader.files) < 2:
        return _of_reader(hop, reader)
    inside = inner.of(hop.root, reader.pid)
    speaking = [path for path in reader.files[:_MOST_FILES] if _has_a_servers_lines(inside, path)]
    if len(speaking) == 1:
        return _of_reader(hop, reader._replace(files=(speaking[0],)))
    why = f"the server writes into a pipe to {reader.name} (pid {reader.pid}), which writes {len(reader.files)} files"
    return unread("pipe", source, why, f"give the right one with --log: {', '.join(reader.files[:4])}")


def _of_reader(hop: _Hop, reader: Reader) -> LogTarget:
    """The file that the reader writes, in its own mount namespace; else where its own output goes."""
    who = f"{reader.name} (pid {reader.pid})"
    source = f"{hop.source} -> pipe -> {who}"
    inside = inner.of(hop.root, reader.pid)
    asked = system_log.remedy(hop.root, reader)
    if asked:
        why = f"the server writes into a pipe to {who}, which sends it to the system log"
        return unread("pipe", source, why, asked)
    if reader.files:
        return _file(inside, reader.files[0], source)._replace(relay=who)
    if fds.kind(reader.out) in ("pipe", "socket", "pty") and reader.out != hop.target and hop.hops < _MOST_HOPS:
        found = _follow(_Hop(inside, 1, reader.out, source, hop.hops + 1))
        if found.path or found.command:
            return found
    why = f"the server writes into a pipe to {who}, which writes no file"
    return unread("pipe", source, why, GIVE_LOG)


def _has_a_servers_lines(inside: Inside, path: str) -> bool:
    """Whether the beginning of a file has lines that only a server writes; a supervisor's own log has none."""
    text = inside.text(path)
    return any(rules.speaks.search(text) for rules in registry.log_rules())


def _kept(hop: _Hop) -> LogTarget | None:
    """A container's runtime or Slurm reads the output; None for neither."""
    container = containers.of(hop.root, hop.pid)
    if container is not None and (container.keeper is not None or not _from_outside(hop)):
        if containers.keeps(hop.root, container, hop.target) is False:
            return None  # started with "docker exec", or by a supervisor in the container
        return container_logs.find(hop.root, container, f"{hop.source} -> {hop.place}")
    job = slurm.job(hop.root, hop.pid)
    if not job:
        return None
    source = f"{hop.source} -> {hop.place} -> Slurm job {job}"
    written = slurm.output(hop.root, job)
    if written is not None:
        return _file(inner.of(hop.root, written[0]), written[1], source)
    why = f"slurmstepd sends the output to srun on another node (Slurm job {job})"
    return unread("pipe", source, why, f"give the file with --log; it is StdOut in: scontrol show job {job}")


def _nobody(hop: _Hop) -> LogTarget:
    """No process that sgmon sees reads it."""
    outside = _from_outside(hop)
    if outside:
        why = (
            f"the server writes into a {hop.place}, and its reader is not visible: it runs outside of this container"
        )
        return unread(fds.kind(hop.target), hop.source, why, f"where this command works: {by_hand(outside)}")
    if containers.of(hop.root, hop.pid) is not None:
        why = "the server was not started as its container's own program, and the reader of its output is not visible"
        return unread("pipe", hop.source, why, f"start it as: ... > FILE 2>&1; or {GIVE_LOG}")
    why = "the server writes into a pipe, and its reader is not visible"
    sudo = "" if os.geteuid() == 0 else ", or run sgmon with sudo"
    return unread("pipe", hop.source, why, f"{GIVE_LOG}, or --log-command with what prints it{sudo}")


def _from_outside(hop: _Hop) -> str:
    """The command for the log of this container, when sgmon runs in it too and the output is that of its first
    process; "" elsewhere."""
    inside = hop.inside
    try:
        main = (fds.link(hop.root, 1, 1), fds.link(hop.root, 1, 2))
    except OSError:
        main = (hop.target, None)
    if inside.prefix or hop.target not in main:
        return ""
    name = _own_id(inside) or os.uname().nodename
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        namespace = inside.text(_NAMESPACE).strip()
        return shlex.join(("kubectl", "logs", "-f", *(["-n", namespace] if namespace else []), os.uname().nodename))
    if inside.has("/run/.containerenv"):
        return shlex.join(("podman", "logs", "-f", name))
    return shlex.join(("docker", "logs", "-f", name)) if inside.has("/.dockerenv") else ""


def _own_id(inside: Inside) -> str:
    """The short id of our own container: its runtime mounts files of a folder with that name (/etc/resolv.conf)."""
    found = (_CONTAINER_FOLDER.search(row.root) or _CONTAINER_FOLDER.search(row.source) for row in inside.rows)
    return next((match[1] for match in found if match), "")


def _terminal(hop: _Hop) -> LogTarget:
    """``script`` and tmux pipe-pane keep what the terminal shows, a runtime what a container's terminal does."""
    found = output_readers.of_terminal(hop.root, hop.pid, hop.target)
    readers = {reader.files[0]: reader for reader in found if reader.files}  # a shell and its cat write one file
    if len(readers) == 1:
        (reader,) = readers.values()
        source = f"{hop.source} -> terminal -> {reader.name} (pid {reader.pid})"
        return _file(inner.of(hop.root, reader.pid), reader.files[0], source)
    if readers:
        paths = ", ".join(list(readers)[:4])
        why = "the server writes to a terminal of tmux, where several panes are piped into files"
        return unread("pty", hop.source, why, f"give the right one with --log: {paths}")
    kept = _kept(hop)
    if kept is not None:
        return kept
    if _from_outside(hop):
        return _nobody(hop)
    why = "the server writes to a terminal, which keeps nothing that could be read"
    return unread("pty", hop.source, why, f"start it as: ... > FILE 2>&1; or {GIVE_LOG}")


def _socket(hop: _Hop) -> LogTarget:
    """systemd gives a service a socket to the journal; a systemd in a container has a journal there."""
    container = containers.of(hop.root, hop.pid)
    within = journal.unit_within(hop.root, hop.pid, container.id) if container is not None else ""
    if within and container is not None and hop.inside.prefix:
        why = f"it is in the journal of {within}, which a systemd in the container {container.short} keeps"
        return unread("socket", hop.source, why, f"run sgmon in that container; or {GIVE_LOG}")
    if within:
        return _journal(hop, within, user=False)
    kept = _kept(hop)
    if kept is not None:
        return kept
    unit, user = journal.unit(hop.root, hop.pid)
    if unit:
        return _journal(hop, unit, user=user)
    far = _connection(hop)
    if far:
        why = f"the server writes into a TCP connection to {far}"
        return unread("socket", hop.source, why, f"{GIVE_LOG} where it arrives, or --log-command")
    remedy = f"is it in the journal? journalctl _PID={hop.pid}; or {GIVE_LOG}"
    return unread("socket", hop.source, "the server writes into a socket", remedy)


def _connection(hop: _Hop) -> str:
    """The other end of a TCP connection; "" for another socket, and where that may not be read."""
    inode = fds.inode(hop.target)
    try:
        row = net.table(hop.root, hop.pid).get(inode) if inode is not None else None
    except OSError:
        return ""
    return row.remote if row is not None and row.state != "LISTEN" else ""


def _journal(hop: _Hop, unit: str, *, user: bool) -> LogTarget:
    """The lines of a unit since its server began."""
    try:
        began = started_epoch(hop.root, stat.read(hop.root, hop.pid).start_ticks)
    except OSError:
        began = None
    return by_command(journal.of_unit(unit, user, began), f"{hop.source} -> journal of {unit}")


def _hidden(error: OSError, root: str) -> Missing:
    found = files.missing("log", error, root)
    return Missing("log", found.why, f"{found.remedy}; or {GIVE_LOG}" if found.remedy else GIVE_LOG)
