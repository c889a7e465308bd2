"""NCCL's RAS answers read: JSON (with its missing commas) and the text form. Pure; nothing here raises."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec.structs import replace

from sgmon.model import RasCommunicator, RasRank, RasReading
from sgmon.patterns import regex
from sgmon.text import clean, without_prefix

ANY_OPERATION = "collective"  # NCCL 2.24-2.26 count all collectives together

# NCCL 2.28.9 writes no comma between "nvml_dev": 1 and "status" in missing_ranks
_NO_COMMA = regex(r"(?<=[\w\"\]}])(\s*\n\s*)(?=\")")
_LAST_COMMA = regex(r",(\s*[\]}])")
_VERSION = regex(r"^R?N?CCL version (\S+)", re.MULTILINE)
_GROUP = regex(
    r"^\s*(?P<group>\d+)\s+(?P<comms>\d+)\s+\d+\s+\d+\s+(?P<size>\d+)\s+\d+\s+(?P<state>[A-Z]\S*)\s+(?P<status>[A-Z]\S*)",
    re.MULTILINE,
)
_COMM = regex(r"^#(?P<group>\d+)-\d+ \((?P<hash>[0-9a-fA-F]+)\) (?P<status>\S.*)$")
_DIFFERENT = regex(r"different (?P<op>\w+) operation counts")
_COUNT = regex(r"(?:has|have) launched up to operation (?P<count>\d+)")
_NONE = regex(r"(?:has|have) not launched any operations")
_RANK = regex(r"^\s+Rank (?P<rank>\d+)\b")
_MANY = regex(r"^\s+\d+ ranks (?:has|have)\b")
_WHERE = regex(r"GPU (?P<gpu>\d+)?\S* managed by process (?P<pid>\d+) on node (?P<host>\S+)")


def parse(body: str, address: str) -> RasReading:
    """One status answer, JSON or text. Never raises: what cannot be read is answered "garbled"."""
    start = body.find("{")
    if body.lstrip().startswith("{"):
        found = _load(body[start:])
        if found is None:
            return RasReading(address, "garbled", form="json", note="NCCL's JSON could not be repaired")
        return _from_json(found, address)
    if _VERSION.search(body) is None:
        words = clean(" ".join(body.split()), 120)
        return RasReading(address, "garbled", form="text", note=f"not a RAS answer: {words or 'empty'}")
    return _from_text(body, address)


def repair(text: str) -> str:
    """JSON with the commas put in that NCCL forgot between a value and the next name, and those too many out."""
    return _LAST_COMMA.sub(r"\1", _NO_COMMA.sub(r",\1", text))


def _load(text: str) -> dict[str, object] | None:
    for candidate in (text, repair(text)):
        try:
            found, _ = json.JSONDecoder().raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def _from_json(found: dict[str, object], address: str) -> RasReading:
    return RasReading(
        address,
        "ok",
        version=_str(found.get("nccl_version")),
        form="json",
        communicators=tuple(_json_comm(item) for item in _dicts(found.get("communicators"))),
    )


def _json_comm(item: dict[str, object]) -> RasCommunicator:
    ranks = [_json_rank(entry, missing=False) for entry in _dicts(item.get("ranks"))]
    ranks += [_json_rank(entry, missing=True) for entry in _dicts(item.get("missing_ranks"))]
    ranks.sort(key=lambda rank: rank.rank)
    missing = _int(item.get("missing_ranks_count")) or 0
    return judged(
        RasCommunicator(
            without_prefix(_str(item.get("hash")), "0x"), _int(item.get("size")) or len(ranks), tuple(ranks)
        ),
        incomplete=missing > 0,
    )


def _json_rank(item: dict[str, object], *, missing: bool) -> RasRank:
    status = item.get("status")
    status = status if isinstance(status, dict) else {}
    counts = item.get("collective_counts")
    return RasRank(
        rank=_int(item.get("rank")) or 0,
        host=_str(item.get("host")),
        pid=_int(item.get("pid")),
        gpu=_int(item.get("nvml_dev")),
        counts=tuple((clean(str(name), 40), value) for name, value in counts.items() if isinstance(value, int))
        if isinstance(counts, dict)
        else None,
        missing=missing,
        unresponsive=status.get("unresponsive") is True,
        dead=status.get("considered_dead") is True,
    )


def judged(comm: RasCommunicator, *, incomplete: bool = False) -> RasCommunicator:
    """``comm`` with status, operation, behind and crossed worked out from the counts of its ranks."""
    tables = {rank.rank: dict(rank.counts) for rank in comm.ranks if rank.counts is not None}
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    behind: dict[str, frozenset[int]] = {}
    for name in names:
        values = {rank: table.get(name, 0) for rank, table in tables.items()}
        top = max(values.values())
        late = frozenset(rank for rank, value in values.items() if value < top)
        if late:
            behind[name] = late
    everyone = frozenset().union(*behind.values()) if behind else frozenset()
    ahead = frozenset().union(*(frozenset(tables) - late for late in behind.values())) if behind else frozenset()
    status = comm.status
    if not status:
        status = "INCOMPLETE" if incomplete or any(r.missing for r in comm.ranks) else "MISMATCH" if behind else "OK"
    return replace(
        comm,
        status=status,
        operation=", ".join(behind),
        behind=tuple(sorted(everyone)),
        crossed=len(behind) > 1 and bool(everyone & ahead),
    )


def _from_text(body: str, address: str) -> RasReading:
    version = _VERSION.search(body)
    details = _text_details(body.splitlines())
    named = {comm.hash: comm for comm in details}
    groups = list(_GROUP.finditer(body))
    sizes = {match["group"]: int(match["size"]) for match in groups}
    comms = [replace(comm, size=sizes.get(group, len(comm.ranks))) for group, comm in _by_group(body, named)]
    told = {group for group, _ in _by_group(body, named)}
    comms += [
        RasCommunicator("", int(match["size"]), status=clean(match["status"], 40))
        for match in groups
        if match["group"] not in told
    ]
    return RasReading(
        address,
        "ok",
        version=clean(version[1], 40) if version else "",
        form="text",
        communicators=tuple(comms),
        warnings=tuple(clean(line.strip(), 160) for line in body.splitlines() if "different" in line)[:8],
    )


def _by_group(body: str, named: dict[str, RasCommunicator]) -> list[tuple[str, RasCommunicator]]:
    seen: dict[str, tuple[str, RasCommunicator]] = {}
    for line in body.splitlines():
        match = _COMM.match(line)
        if match and match["hash"] in named:
            seen.setdefault(match["hash"], (match["group"], named[match["hash"]]))
    return list(seen.values())


def _text_details(lines: Sequence[str]) -> list[RasCommunicator]:
    """Communicators that the Errors and Warnings sections name, with the ranks named there."""
    found: dict[str, tuple[str, dict[int, RasRank]]] = {}
    ranks: dict[int, RasRank] | None = None
    operation, count, status = ANY_OPERATION, None, ""
    for line in lines:
        head = _COMM.match(line)
        if head:
            status = clean(head["status"], 40)
            ranks = found.setdefault(head["hash"], (status, {}))[1]
            operation, count = ANY_OPERATION, None
            continue
        if ranks is None:
            continue
        different = _DIFFERENT.search(line)
        if different:
            operation, count = different["op"], None
        elif _MANY.match(line):
            count = _text_count(line)
        elif _RANK.match(line):
            own = _text_count(line)
            _add_text_rank(ranks, line, operation, count if own is None else own, status)
    return [
        judged(RasCommunicator(hash_, 0, tuple(ranks.values()), status)) for hash_, (status, ranks) in found.items()
    ]


def _text_count(line: str) -> int | None:
    match = _COUNT.search(line)
    return int(match["count"]) if match else 0 if _NONE.search(line) else None


def _add_text_rank(ranks: dict[int, RasRank], line: str, operation: str, count: int | None, status: str) -> None:
    match, where = _RANK.match(line), _WHERE.search(line)
    if match is None:
        return
    number = int(match["rank"])
    old = ranks.get(number, RasRank(number))
    counts = dict(old.counts or ())
    if count is not None:
        counts[operation] = count
    gone = count is None and status.startswith(("INCOMPLETE", "DEAD"))
    ranks[number] = replace(
        old,
        host=clean(where["host"], 80) if where else old.host,
        pid=int(where["pid"]) if where else old.pid,
        gpu=int(where["gpu"]) if where and where["gpu"] else old.gpu,
        counts=tuple(counts.items()) or None,
        missing=old.missing or gone,
        unresponsive=old.unresponsive or (gone and not status.startswith("DEAD")),
        dead=old.dead or status.startswith("DEAD"),
    )


def _dicts(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _str(value: object) -> str:
    return clean(value, 80) if isinstance(value, str) else ""
