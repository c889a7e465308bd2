"""Which GPUs can read each other's memory, by NVML. Asked once: it changes only with the driver."""

from __future__ import annotations

from typing import Any

from sgmon.collect.gpu.gateway import Place

#: nvmlGpuP2PStatus_t and nvmlGpuP2PCapsIndex_t (nvml.h)
STATUS = (
    "ok",
    "chipset not supported",
    "GPU not supported",
    "not supported between these root ports",
    "switched off in the driver",
    "not supported",
)
_READ, _NVLINK = 0, 2


def links(nvml: Any, count: int, place: Place) -> list[tuple[int, int, str, bool | None]]:
    """(GPU, GPU, status in words, by NVLink) of each pair that NVML tells of; [] where it does not know the call."""
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    except nvml.NVMLError:
        return []
    found: list[tuple[int, int, str, bool | None]] = []
    for one in range(count):
        for two in range(one + 1, count):
            place("nvmlDeviceGetP2PStatus", one)
            status = _status(nvml, handles[one], handles[two], _READ)
            if status is not None and status < len(STATUS):
                nvlink = _status(nvml, handles[one], handles[two], _NVLINK)
                found.append((one, two, STATUS[status], None if nvlink is None else nvlink == 0))
    place("")
    return found


def _status(nvml: Any, one: Any, two: Any, what: int) -> int | None:
    try:
        return int(nvml.nvmlDeviceGetP2PStatus(one, two, what))
    except (nvml.NVMLError, AttributeError):
        return None
