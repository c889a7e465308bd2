"""Who wrote a line, and when: the prefixes of SGLang, uvicorn, NCCL, c10d, glog, Ray, compose, Kubernetes, Kibana.

SGLang's own is ``[%(asctime)s{ranks}] message`` without a level (sglang srt/utils/common.py ``configure_logger``);
ranks come in any order: the token order differs between versions. All else is met in logs of public reports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

_RANK_TOKEN = r"(?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+"
#: SGLang's prefix; the date may be short ("12-16", diffusion server) or absent (retyped logs).
RECORD = re.compile(
    r"\[(?P<time>(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d:\d\d)(?:[.,]\d+)?(?P<ranks>(?: " + _RANK_TOKEN + r")*)\] ?"
)
#: A record that begins inside a line (glued to a bar, or torn).
INNER = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: " + _RANK_TOKEN + r")*\] |\[rank\d+\]:\[[EWIF]\d"
)

_OUTER = re.compile(
    r"(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[\d.,]*(?:Z|[+-]\d\d:?\d\d)\s(?:std(?:out|err) [FP] )?"  # Kubernetes
    r"|(?:\[[\w.-]+\]|[\w.-]*sglang[\w.-]*|[\w.]+[-_]\d+)\s+\| "  # docker compose
    r"|\(\w+ pid=\d+(?:, ip=[\d.:a-f]+)?\) "  # Ray
    r"|[A-Z][a-z]{2} \d+, \d{4} @ [\d:.]+\s+"  # Kibana
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w.@-]+\[\d+\]: "  # syslog, journalctl
)
_LEVELS = {"INFO": "info", "WARNING": "warning", "WARN": "warning", "ERROR": "error", "CRITICAL": "error"}
_LEVEL = r"(?P<level>INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL)"
_STAMPED = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,]\d+)?\s+(?:- )?"
    + _LEVEL
    + r"\s+(?:- )?(?:(?P<pid>\d+)\s+)?(?:\[?[\w./-]+:\d+\]\s+)?"
)
_SHORT = re.compile(_LEVEL + r" \d\d-\d\d \d\d:\d\d:\d\d (?:\[?[\w.]+:\d+\] )?")
_NCCL = re.compile(
    r"(?P<host>[\w.-]+):\d+:\d+ \[(?P<gpu>\d+)\] "
    r"(?:(?:[\w/]+\.cc:\d+ )?NCCL (?P<level>INFO|WARN|ERROR)|(?=[\w/]+\.cc))"
)
_TORCH = re.compile(
    r"(?:\[rank(?P<rank>\d+)\]:)?\[(?P<level>[EWIF])\d{3,4} \d\d:\d\d:\d\d\.\d+ (?P<where>[\w.]+:\d+)\] ?"
)
_GLOG = re.compile(r"(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\] ")
_OLD_RANK = re.compile(r"(?P<rank>Rank \d+): (?=[a-z])|\[(?P<gpu>gpu=\d+)\] ")
_UVICORN = re.compile(r"(?P<level>INFO|WARNING|ERROR|CRITICAL):\s+")
_LETTERS = {"I": "info", "W": "warning", "E": "error", "F": "error"}
_TOKENS = re.compile(_RANK_TOKEN)


@dataclass(slots=True)
class Origin:
    """What a prefix told. body: where the message begins in the text. rank_inferred: from a GPU index."""

    rank: str = ""
    t: float | None = None
    level: str = ""
    body: int = 0
    source: str = ""  # sglang | uvicorn | nccl | torch | glog | other | ""
    rank_inferred: bool = False


def origin(text: str) -> Origin:
    """Read every prefix at the beginning of ``text``."""
    at = 0
    found = Origin()
    for _ in range(3):  # compose around Kubernetes around Ray: nested at most this deep
        first = text[at : at + 1]
        if first == "[" and RECORD.match(text, at):
            break
        outer = _OUTER.match(text, at)
        if not outer or outer.end() == at:
            break
        at = outer.end()
        if outer["iso"] and found.t is None:
            found.t = epoch(outer["iso"])
    found.body = at
    first = text[at : at + 1]
    if first == "[":
        _bracket(text, at, found)
    elif first:
        _plain(text, at, found)
    return found


@lru_cache(maxsize=1024)
def canonical_rank(ranks: str) -> str:
    """ "TP0 EP0" -> "TP0": an EP rank is its TP rank, no process of its own; other tokens stay as they are."""
    tokens = _TOKENS.findall(ranks)
    if any(token.startswith("TP") for token in tokens):
        tokens = [token for token in tokens if not token.startswith("EP")]
    return " ".join(tokens)


def epoch(stamp: str) -> float | None:
    """Seconds since the epoch of "2026-01-29 13:12:36", taken as local time; None if it is no full date."""
    if len(stamp) < 19 or stamp[4] != "-":
        return None
    minute = _minute(stamp[:10] + " " + stamp[11:16])
    return None if minute is None else minute + int(stamp[17:19])


@lru_cache(maxsize=4096)
def _minute(stamp: str) -> float | None:
    try:
        return datetime.strptime(stamp, "%Y-%m-%d %H:%M").timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _bracket(text: str, at: int, found: Origin) -> None:
    record = RECORD.match(text, at)
    if record:
        stamp = epoch(record["time"])
        found.t = stamp if stamp is not None else found.t
        found.rank = canonical_rank(record["ranks"]) if record["ranks"] else ""
        found.body = record.end()
        found.source = "sglang"
        _after_record(text, found)
        return
    torch = _TORCH.match(text, at)
    if torch:
        found.rank = f"rank{torch['rank']}" if torch["rank"] else ""
        found.level = _LETTERS[torch["level"]]
        found.body = torch.end()
        found.source = "torch"
        return
    old = _OLD_RANK.match(text, at)
    if old:
        found.rank = old["gpu"]
        found.body = old.end()
        found.source = "sglang"


def _after_record(text: str, found: Origin) -> None:
    level = _UVICORN.match(text, found.body)
    if level:
        found.level = _LEVELS[level["level"]]
        found.source = "uvicorn"
        return
    if "NCCL" in text[found.body : found.body + 160]:
        nccl = _NCCL.match(text, found.body)
        if nccl:
            _nccl(nccl, found)


def _plain(text: str, at: int, found: Origin) -> None:
    stamped = _STAMPED.match(text, at)
    if stamped:
        found.t = epoch(stamped["time"])
        found.level = _LEVELS.get(stamped["level"], "")
        found.rank = f"pid {stamped['pid']}" if stamped["pid"] else ""
        found.body = stamped.end()
        found.source = "other"
        return
    for pattern in (_SHORT, _UVICORN):
        match = pattern.match(text, at)
        if match:
            found.level = _LEVELS.get(match["level"], "")
            found.source = "uvicorn" if pattern is _UVICORN else "other"
            if pattern is _SHORT:
                found.body = match.end()
            return
    nccl = _NCCL.match(text, at) if " [" in text[at : at + 120] else None
    if nccl:
        _nccl(nccl, found)
        return
    glog = _GLOG.match(text, at)
    if glog:
        found.level = _LETTERS[glog["level"]]
        found.body = glog.end()
        found.source = "glog"
        return
    old = _OLD_RANK.match(text, at)
    if old:
        found.rank = old["rank"] or old["gpu"]
        found.body = old.end()
        found.source = "sglang"


def _nccl(match: re.Match[str], found: Origin) -> None:
    found.rank = f"TP{match['gpu']}"
    found.rank_inferred = True
    found.level = "warning" if match["level"] in ("WARN", "ERROR") else "info"
    found.source = "nccl"
