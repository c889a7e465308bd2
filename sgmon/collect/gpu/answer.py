"""The NVML child's JSON made into model objects. N/A is None with its reason in ``missing``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgmon.model import Gpu, GpuProcess, GpuSlice, Missing
from sgmon.proc import files
from sgmon.text import clean, safe

if TYPE_CHECKING:
    from typing import TypeAlias

NameOf: TypeAlias = "Callable[[int], str]"
_PCIE_STALE_S = 25.0  # the child reads it every 10 s; a thread stuck in that call must not show old rates


class PcieAge:
    """Whether the PCIe rates are from now: the child counts its rounds, the clock is ours."""

    def __init__(self) -> None:
        self._round = -1
        self._since_t = 0.0

    def fresh(self, round_number: int, now: float) -> bool:
        if round_number != self._round:
            self._round, self._since_t = round_number, now
        return now - self._since_t < _PCIE_STALE_S


def gpu_from(item: dict[str, Any], before: Gpu | None, name_of: NameOf, fresh_pcie: bool) -> Gpu:
    """One GPU of an answer; one that gives no values keeps the name it had ``before``."""
    index = int(item["index"])
    if item.get("error") or item.get("skipped"):
        return Gpu(
            index=index,
            name=clean(item.get("name") or (before.name if before else ""), 60),
            uuid=str(item.get("uuid") or (before.uuid if before else "")),
            total_bytes=before.total_bytes if before else None,
            error=clean(str(item.get("error", "")), 160),
        )
    missing = {str(key): str(why) for key, why in item["missing"].items()}
    used, reserved = item.get("used"), item.get("reserved")
    if used is None and item.get("used_v1") is not None:
        used = int(item["used_v1"])
        reserved = before.reserved_bytes if before and before.uuid == item.get("uuid") else None
        if reserved is not None:
            used = max(0, used - reserved)
        else:
            missing["reserved_bytes"] = "this driver counts its reserve (about 0.6 GiB) as used"
    pcie = item.get("pcie") if fresh_pcie else None
    mig = bool(item.get("mig"))
    return Gpu(
        index=index,
        name=clean(str(item.get("name", "")), 60),
        uuid=str(item.get("uuid", "")),
        total_bytes=item.get("total"),
        used_bytes=used,
        reserved_bytes=reserved,
        util_percent=item.get("util"),
        power_w=_watts(item.get("power_mw")),
        power_limit_w=_watts(item.get("limit_mw")),
        temperature_c=item.get("temperature"),
        sm_clock_mhz=item.get("sm_clock"),
        pcie_rx_bytes_s=pcie[0] if pcie else None,
        pcie_tx_bytes_s=pcie[1] if pcie else None,
        throttle=tuple(item.get("throttle") or ()),
        ecc_errors=item.get("ecc"),
        mig=mig,
        minor=item.get("minor"),
        processes=_processes(item, name_of),
        slices=tuple(_slice(part, name_of) for part in item.get("slices", ())),
        missing=tuple(Missing(key, why) for key, why in missing.items()),
    )


def name_of(proc_root: Path, pid: int) -> str:
    """The command line of a process (SGLang sets it to its title), else [comm], else "" (gone, or another
    pid namespace)."""
    folder = f"{proc_root}/{pid}"
    try:
        words = files.small(f"{folder}/cmdline")[:4096].rstrip(b"\0 ")
        if words:
            return _title(words)
        return f"[{clean(files.text(f'{folder}/comm').strip(), 20)}]"
    except OSError:
        return ""


@lru_cache(maxsize=256)
def _title(words: bytes) -> str:
    return safe(words.replace(b"\0", b" ").decode("utf-8", "replace"), 120)


def _processes(item: dict[str, Any], name_of: NameOf) -> tuple[GpuProcess, ...]:
    return tuple(
        GpuProcess(pid=int(pid), used_bytes=used, name=name_of(int(pid))) for pid, used in item.get("processes") or ()
    )


def _slice(part: dict[str, Any], name_of: NameOf) -> GpuSlice:
    return GpuSlice(
        slot=int(part["slot"]),
        name=clean(str(part.get("name", "")), 60),
        uuid=str(part.get("uuid", "")),
        total_bytes=part.get("total"),
        used_bytes=part.get("used_v1"),
        processes=_processes(part, name_of),
    )


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
