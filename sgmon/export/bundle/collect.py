"""What goes into a bundle beside the snapshot: the log, versions, the machine. Reads files: may take seconds."""

from __future__ import annotations

import os
import platform
import socket

from msgspec import Struct

from sgmon import units
from sgmon.discovery import inner
from sgmon.model import LogReading, Snapshot
from sgmon.patterns import regex
from sgmon.proc import files
from sgmon.recording import codec
from sgmon.recording.ring_buffer import SUFFIX, flights_dir
from sgmon.servers import registry
from sgmon.text import is_secret_name, secret_values

HEAD_BYTES = 200_000
TAIL_BYTES = 400_000
_PACKAGES = (
    *(name for family in registry.families() for name in (family.package, *family.packages)),
    *("torch", "triton", "flashinfer-python", "transformers", "xgrammar"),
    *("nvidia-nccl-cu12", "nvidia-nccl-cu13", "deep-gemm", "deep-ep", "mooncake-transfer-engine", "tvm-ffi"),
    *("apache-tvm-ffi", "py-spy", "cuda-python", "nvidia-cuda-runtime-cu12", "aiter", "numpy", "uvloop", "pyzmq"),
)
_DIST = regex(r"^(?P<name>.+?)-(?P<version>[^-]+)\.dist-info$")


class NodeLog(Struct, frozen=True):
    """Beginning and end of one node's log; the beginning "" when the end holds all of it."""

    node: str
    head: str
    tail: str


class Materials(Struct, frozen=True):
    """Everything that a bundle is made of, nothing masked yet. secrets: values known to be secret."""

    snapshot: Snapshot
    recording: bytes | None = None
    flight: bytes | None = None  # an earlier one of the same server, saved when its verdict turned bad
    log_head: str = ""
    log_tail: str = ""
    node_logs: tuple[
        NodeLog, ...
    ] = ()  # where there are several; ``log_head`` and ``log_tail`` are then the culprit's
    versions: tuple[tuple[str, str], ...] = ()
    machine: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    made_by: str = ""

    def __repr__(self) -> str:
        """Without any value: the secrets must not stand in a traceback."""
        return "Materials(...)"


def collect(
    snapshot: Snapshot, recording: bytes | None, *, root: str = "/proc", live: bool = True, made_by: str = ""
) -> Materials:
    """Live: of this machine and the server's files. Else only what the recording holds."""
    if snapshot.nodes:
        return _of_nodes(snapshot, recording, made_by)
    head, tail = _log_file(snapshot, root) if live else ("", "")
    if not tail and recording is not None:
        head, tail = _log_of(recording)
    return Materials(
        snapshot=snapshot,
        recording=recording,
        flight=_flight(snapshot) if live else None,
        log_head=head,
        log_tail=tail,
        versions=_versions(snapshot, root) if live else (),
        machine=_machine() if live else (),
        secrets=_secrets(snapshot, root) if live else (),
        made_by=made_by,
    )


def _of_nodes(snapshot: Snapshot, recording: bytes | None, made_by: str) -> Materials:
    """Of several machines only what they have told: their files are not here."""
    names = [view.name for view in snapshot.nodes]
    texts = {name: _Ends() for name in names}
    for event in codec.events_of(recording) if recording is not None else ():
        if isinstance(event.reading, LogReading):
            texts.setdefault(event.node, _Ends()).add(event.reading.text)
    logs = tuple(NodeLog(name, *texts[name].ends) for name in names)
    failed = next((v.name for v in snapshot.nodes if v.snapshot.log.error is snapshot.log.error), names[0])
    node = failed if snapshot.log.error is not None else next(iter(snapshot.verdict.nodes), names[0])
    own = next((log for log in logs if log.node == node), logs[0])
    return Materials(snapshot, recording, log_head=own.head, log_tail=own.tail, node_logs=logs, made_by=made_by)


def _flight(snapshot: Snapshot) -> bytes | None:
    """The newest flight of this very server."""
    server = snapshot.server
    if server is None:
        return None
    began = server.started_epoch or 0.0
    try:
        found = [(path.stat().st_mtime, path) for path in flights_dir().glob(f"*-pid{server.pid}-*{SUFFIX}")]
        return max(found)[1].read_bytes() if found and max(found)[0] > began else None
    except OSError:
        return None


def _log_file(snapshot: Snapshot, root: str) -> tuple[str, str]:
    """Beginning and end of the log; the beginning "" when the end holds all of it."""
    server = snapshot.server
    if server is None or server.log_kind not in ("file", "deleted") or not server.log_path:
        return "", ""
    try:
        with open(server.log_path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size <= HEAD_BYTES + TAIL_BYTES:
                file.seek(0)
                return "", file.read(size).decode("utf-8", "replace")
            file.seek(0)
            head = file.read(HEAD_BYTES)
            file.seek(size - TAIL_BYTES)
            return head.decode("utf-8", "replace"), file.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return "", ""


def _log_of(recording: bytes) -> tuple[str, str]:
    ends = _Ends()
    for event in codec.events_of(recording):
        if isinstance(event.reading, LogReading):
            ends.add(event.reading.text)
    return ends.ends


class _Ends:
    """Beginning and end of a text that comes in pieces. What lies between is let go: it may be gigabytes."""

    def __init__(self) -> None:
        self._begin = self._tail = ""
        self._size = 0

    def add(self, text: str) -> None:
        self._size += len(text)
        self._begin += text[: HEAD_BYTES + TAIL_BYTES - len(self._begin)]
        self._tail = (self._tail + text[-TAIL_BYTES:])[-TAIL_BYTES:]

    @property
    def ends(self) -> tuple[str, str]:
        """(beginning, end); the beginning "" when the end holds all of it."""
        if self._size <= HEAD_BYTES + TAIL_BYTES:
            return "", self._begin
        return self._begin[:HEAD_BYTES], self._tail


def _versions(snapshot: Snapshot, root: str) -> tuple[tuple[str, str], ...]:
    """Of the packages in the server's own site-packages that matter to a start."""
    server = snapshot.server
    if server is None or not server.site_packages:
        return ()
    inside = inner.of(root, server.pid)
    found = {}
    for name in inside.listing(server.site_packages):
        match = _DIST.match(name)
        if match:
            found[match["name"].lower().replace("_", "-")] = match["version"]
    return tuple((name, found[name]) for name in _PACKAGES if name in found)


def _machine() -> tuple[tuple[str, str], ...]:
    import psutil  # 25 ms that a report alone pays

    facts = [
        ("host", socket.gethostname()),
        ("kernel", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("system", _os_name()),
        ("CPUs", str(os.cpu_count())),
        ("container", "yes" if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") else "no sign"),
    ]
    try:
        memory, shm = psutil.virtual_memory(), psutil.disk_usage("/dev/shm")
        facts.append(("memory", f"{units.size(memory.available)} of {units.size(memory.total)} available"))
        facts.append(("/dev/shm", f"{units.size(shm.free)} of {units.size(shm.total)} free"))
    except OSError:
        pass
    return tuple((name, value) for name, value in facts if value)


def _os_name() -> str:
    try:
        lines = files.text("/etc/os-release").splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2].strip('"') for line in lines if line.startswith("PRETTY_NAME=")), "")


def _secrets(snapshot: Snapshot, root: str) -> tuple[str, ...]:
    """The values themselves, from the launcher's environment and command line: to be found wherever they stand."""
    server = snapshot.server
    if server is None:
        return ()
    environ = inner.environment(root, server.pid) or {}
    found = [value for name, value in environ.items() if value and is_secret_name(name)]
    try:
        argv = files.text(f"{root}/{server.pid}/cmdline").split("\0")
    except OSError:  # it has ended, or is a zombie
        argv = []
    return (*found, *secret_values(argv))
