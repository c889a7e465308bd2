"""What the NVML child reads beside its answers, in threads of its own: slow PCIe rates, and Xid events."""

from __future__ import annotations

import threading
from typing import Any

PCIE_EVERY_S = 10.0  # one PCIe call takes 20.6 ms on an H200 (driver 580.159)
_XID = 0x8  # nvmlEventTypeXidCriticalError
_WAIT_MS = 5000
_KEPT_XIDS = 16


class PcieRates:
    """index -> (receive, send) in bytes/s, over the 20 ms of the call. ``round`` counts, so that its age is known."""

    def __init__(self, nvml: Any) -> None:
        self.rates: dict[int, tuple[int, int]] = {}
        self.round = 0
        self._nvml = nvml
        self._pause = threading.Event()
        threading.Thread(target=self._loop, name="pcie", daemon=True).start()

    def _loop(self) -> None:
        while True:
            try:
                for index in range(self._nvml.nvmlDeviceGetCount()):
                    self._read(index)
            except self._nvml.NVMLError:
                self.rates = {}
            self.round += 1
            self._pause.wait(PCIE_EVERY_S)

    def _read(self, index: int) -> None:
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            receive = nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_RX_BYTES)
            send = nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_TX_BYTES)
        except nvml.NVMLError:
            self.rates.pop(index, None)
        else:
            self.rates[index] = (receive * 1024, send * 1024)  # NVML gives KB/s


class Xids:
    """index -> Xid numbers since this child started, oldest first. Earlier ones are in dmesg only."""

    def __init__(self, nvml: Any, count: int) -> None:
        self.seen: dict[int, list[int]] = {}
        self._nvml = nvml
        self._count = count
        threading.Thread(target=self._loop, name="xid", daemon=True).start()

    def _loop(self) -> None:
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
            indices = self._register(events)
            while indices:
                try:
                    event = nvml.nvmlEventSetWait_v2(events, _WAIT_MS)
                except nvml.NVMLError_Timeout:
                    continue
                index = nvml.nvmlDeviceGetIndex(event.device)
                self.seen[index] = [*self.seen.get(index, []), int(event.eventData)][-_KEPT_XIDS:]
        except nvml.NVMLError:
            return  # no events on this driver or GPU, or the GPU is gone

    def _register(self, events: Any) -> int:
        """How many GPUs will tell."""
        told = 0
        for index in range(self._count):
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
                self._nvml.nvmlDeviceRegisterEvents(handle, _XID, events)
                told += 1
            except self._nvml.NVMLError:
                continue
        return told
