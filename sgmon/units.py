"""Numbers as people read them. Fixed vocabulary; every function is pure."""

from __future__ import annotations

GIB = 1024**3


def size(count: float | None) -> str:
    """Bytes in binary units, three significant digits: "512 B", "4.2 KiB", "76.1 GiB"; "?" when unknown."""
    if count is None:
        return "?"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1000 or unit == "TiB":
            if unit == "B":
                return f"{value:.0f} B"
            return f"{value:.1f} {unit}" if abs(value) < 100 else f"{value:.0f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def gib(count: float | None, digits: int = 1) -> str:
    """Bytes as a bare number of GiB: "76.1"; "?" when unknown."""
    return "?" if count is None else f"{count / GIB:.{digits}f}"


def rate(bytes_per_s: float | None) -> str:
    """ "507 MiB/s"; "?" when unknown."""
    return "?" if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def seconds_of(text: str) -> float | None:
    """The seconds of a duration that a person wrote: 90, 90s, 30m, 2h; None for anything else."""
    factor = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:].lower(), 0.0)
    try:
        return float(text[:-1]) * factor if factor else float(text)
    except ValueError:
        return None


def duration(seconds: float | None) -> str:
    """ "0.4s" below ten seconds, then "47s", "4m12s", "1h03m"; "?" when unknown."""
    if seconds is None:
        return "?"
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def age(seconds: float | None) -> str:
    """An age in whole units: "3s", "2m05s"; "?" when unknown."""
    if seconds is None:
        return "?"
    return f"{max(0, int(seconds))}s" if seconds < 60 else duration(int(seconds))


def rough(seconds: float) -> int:
    """Whole seconds in steps: 0 below three, then 1, 5, 10, 30 and 60 s steps as it grows.

    All that is said of one moment goes through here, so that it reads the same wherever it stands and ticks together,
    and a quiet screen repaints little.
    """
    whole = max(0, int(seconds))
    if whole < 3:
        return 0
    for limit, step in ((10, 1), (30, 5), (120, 10), (600, 30)):
        if whole < limit:
            return whole - whole % step
    return whole - whole % 60


def lasting(seconds: float) -> str:
    """How long something has lasted that goes on, in the steps of ``rough``: "2s", "50s", "8m30s"."""
    return age(rough(seconds) or seconds)


#: states that are a moment, and states whose silence began before they were called so
_MOMENTS, _SILENCES = frozenset({"crashed", "ended"}), frozenset({"suspect", "stalled"})


def state_age(state: str, seconds: float) -> str:
    """What the time beside a state says: "silent 50s" of a silence, "50s ago" of an end, "for 50s" of all others."""
    if state in _MOMENTS:
        return f"{lasting(seconds)} ago"
    return f"{'silent' if state in _SILENCES else 'for'} {lasting(seconds)}"


def percent(value: float | None) -> str:
    """ "97%"; "?" when unknown."""
    return "?" if value is None else f"{value:.0f}%"


def address(host: str, port: int) -> str:
    """ "127.0.0.1:30000", "[::1]:30000"."""
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def plural(count: int, noun: str) -> str:
    """ "1 rank", "3 ranks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def rank_list(ranks: tuple[str, ...] | list[str]) -> str:
    """Ranks folded into runs: ("TP0", "TP1", "TP2", "TP5") -> "TP0-2,5". Mixed or named ranks stay spelled out."""
    groups: dict[str, list[int]] = {}
    order: list[str] = []
    for rank in ranks:
        stem = rank.rstrip("0123456789")
        digits = rank[len(stem) :]
        if not digits:
            stem, number = rank, -1
        else:
            number = int(digits)
        if stem not in groups:
            groups[stem] = []
            order.append(stem)
        groups[stem].append(number)
    parts: list[str] = []
    for stem in order:
        numbers = sorted(set(groups[stem]))
        if numbers == [-1]:
            parts.append(stem or "rank")
            continue
        parts.append(stem + ",".join(_runs([n for n in numbers if n >= 0])))
    return " ".join(parts)


def _runs(numbers: list[int]) -> list[str]:
    runs: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == previous + 1:
            previous = number
            continue
        runs.append(str(start) if start == previous else f"{start}-{previous}")
        if number is not None:
            start = previous = number
    return runs
