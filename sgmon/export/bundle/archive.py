"""The zip of a report: masked, limited in size, with a list of what was masked, which can be shown before writing."""

from __future__ import annotations

import io
import secrets
import zipfile
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sgmon import units
from sgmon.export.bundle.collect import Materials, NodeLog
from sgmon.export.bundle.events import masked_recording
from sgmon.export.bundle.page import page, stacks_text
from sgmon.export.bundle.redact import Redactor
from sgmon.export.json import status_report
from sgmon.model import LogState, Snapshot
from sgmon.paths import write_whole
from sgmon.patterns import regex
from sgmon.recording.codec import RecordingError

MOST_BYTES = 5_000_000
_RECORDING_BYTES = 3_500_000
_UNSAFE = regex(r"[^\w.-]+|^\.+")
_HOME = regex(r"/(?:home|Users)/([\w.-]+)")
LEFT_OUT = "(left out: --no-log)"


class Bundle(Struct, frozen=True):
    """A finished bundle in memory. masked: what was masked, a line a place."""

    name: str
    data: bytes
    files: tuple[tuple[str, int], ...]
    masked: tuple[str, ...]

    def words(self) -> list[str]:
        """What would be written and what was masked, for the person who will send it."""
        lines = [f"{units.size(len(self.data))}: " + ", ".join(f"{name} ({units.size(n)})" for name, n in self.files)]
        lines.append("masked:" if self.masked else "nothing looked like a secret")
        return lines + [f"  {line}" for line in self.masked]

    def write(self, path: Path) -> Path:
        """The whole file or none. Raises OSError."""
        return write_whole(path, (self.data,))


def pack(
    materials: Materials, *, name: str, log: bool = True, hash_paths: bool = False, salt: str | None = None
) -> Bundle:
    """The bundle. It is at most ``MOST_BYTES``: the recording gives way first, then the beginning of the log."""
    redact = Redactor(hash_paths=hash_paths, salt=secrets.token_hex(8) if salt is None else salt)
    redact.learn(materials.secrets)
    redact.learn_from(materials.log_head)
    redact.learn_from(materials.log_tail)
    if hash_paths:
        redact.hide_names(_private_names(materials))
    snapshot = materials.snapshot if log else _without_log(materials.snapshot)
    room = _RECORDING_BYTES
    while True:
        redact.found.clear()
        data, files = _pack(replace(materials, snapshot=snapshot), redact, name, log, room)
        if len(data) <= MOST_BYTES or room < 100_000:
            return Bundle(f"{name}.zip", data, files, tuple(redact.words()))
        room //= 2


def _pack(
    materials: Materials, redact: Redactor, name: str, log: bool, room: int
) -> tuple[bytes, tuple[tuple[str, int], ...]]:
    snapshot = redact.value(materials.snapshot, "readings")
    clean = replace(
        materials,
        snapshot=snapshot,
        recording=None,
        flight=None,
        log_head=redact.text(materials.log_head, "log") if log else "",
        log_tail=redact.text(materials.log_tail, "log") if log else "",
        node_logs=tuple(
            NodeLog(one.node, redact.text(one.head, "log"), redact.text(one.tail, "log"))
            for one in (materials.node_logs if log else ())
        ),
        machine=redact.value(materials.machine, "machine"),
        secrets=(),
    )
    parts: dict[str, bytes] = {}
    held = {"recording.jsonl.gz": materials.recording, "flight.jsonl.gz": materials.flight}
    for title, recording in held.items():
        if recording is not None:
            try:
                parts[title] = masked_recording(recording, redact, room // 2 if materials.flight else room, log=log)
            except RecordingError:
                continue
    parts["status.json"] = msgspec.json.format(msgspec.json.encode(status_report(snapshot)), indent=1)
    for title, text in (
        ("log-head.txt", clean.log_head),
        ("log.txt", clean.log_tail),
        ("stacks.txt", stacks_text(snapshot)),
    ):
        if text:
            parts[title] = text.encode("utf-8", "replace")
    parts |= _nodes(clean)
    inside = sorted(parts)
    first = {"report.md": redact.text(page(clean, log=log, inside=inside), "report").encode("utf-8", "replace")}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for title, content in (first | parts).items():
            archive.writestr(f"{name}/{title}", content)
    return out.getvalue(), tuple((title, len(content)) for title, content in (first | parts).items())


def _nodes(materials: Materials) -> dict[str, bytes]:
    """A folder a node: what its own events say, its log, its stacks."""
    parts: dict[str, bytes] = {}
    logs = {one.node: one for one in materials.node_logs}
    for view in materials.snapshot.nodes:
        folder = _UNSAFE.sub("_", view.name) or "this-machine"
        log = logs.get(view.name)
        texts = {"log-head.txt": log.head if log else "", "log.txt": log.tail if log else ""}
        texts["stacks.txt"] = stacks_text(view.snapshot)
        report = msgspec.json.format(msgspec.json.encode(status_report(view.snapshot)), indent=1)
        parts[f"{folder}/status.json"] = report
        parts |= {f"{folder}/{title}": text.encode("utf-8", "replace") for title, text in texts.items() if text}
    return parts


def _without_log(snapshot: Snapshot) -> Snapshot:
    """The snapshot without any text of the log; line numbers and milestones stay."""
    nodes = tuple(replace(view, snapshot=_without_log(view.snapshot)) for view in snapshot.nodes)
    log: LogState = snapshot.log
    error = None if log.error is None else replace(log.error, text=LEFT_OUT)
    last = None if log.last_line is None else replace(log.last_line, text=LEFT_OUT)
    bars = tuple(replace(bar, text="") for bar in log.bars)
    verdict = snapshot.verdict
    facts = tuple(
        replace(fact, text=LEFT_OUT, value=None) if fact.signal == "log" else fact for fact in verdict.evidence
    )
    quoted = log.error is not None and log.error.text[:20] and log.error.text[:20] in verdict.headline
    headline = f"{verdict.state} in {verdict.phase}" if quoted else verdict.headline
    return replace(
        snapshot,
        log=replace(log, error=error, last_line=last, bars=bars),
        verdict=replace(verdict, evidence=facts, headline=headline),
        verdicts=tuple(replace(c, headline=headline if quoted else c.headline) for c in snapshot.verdicts),
        causes=tuple(replace(hit, evidence=()) for hit in snapshot.causes),
        nodes=nodes,
    )


def _private_names(materials: Materials) -> tuple[str, ...]:
    """Names that tell of the user and that are no absolute paths: the model, the host, whose home it is."""
    snapshot = materials.snapshot
    server = snapshot.server
    names = [snapshot.start.host] if snapshot.start is not None else []
    names += [value for name, value in materials.machine if name == "host"]
    places = [materials.log_head, materials.log_tail]
    if server is not None:
        names += [server.args.model_path, server.args.served_name]
        places += [server.log_path, server.site_packages, *server.argv]
    names += [name for place in places for name in _HOME.findall(place)]
    names += [name for view in snapshot.nodes for name in (view.name, view.reading.hostname if view.reading else "")]
    return tuple(name for name in names if name and not name.startswith("/"))
