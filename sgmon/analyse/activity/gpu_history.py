"""One GPU over the last ten seconds: does its power move, did its memory step."""

from __future__ import annotations

from sgmon.analyse import thresholds
from sgmon.analyse.gpu.power_levels import CONTEXT_BYTES, POWER_RANGE_W, PowerHistory
from sgmon.model import Gpu, GpuLoad, Mark
from sgmon.units import rate, size


class GpuHistory:
    """Power and utilisation of one GPU, and its memory at the last step."""

    def __init__(self) -> None:
        self._power = PowerHistory()
        self._stepped_bytes: int | None = None
        self.load = GpuLoad(-1)

    def add(self, gpu: Gpu, t: float) -> list[Mark]:
        """Take one reading; the signs of activity in it. A falling memory is one as well: a buffer was freed."""
        self._power.add(gpu, t)
        self.load = self._power.load(gpu.index)
        marks = []
        if gpu.used_bytes is not None:
            if self._stepped_bytes is None:
                self._stepped_bytes = gpu.used_bytes
            step = gpu.used_bytes - self._stepped_bytes
            if abs(step) >= thresholds.GPU_BYTES:
                sign = "+" if step > 0 else "-"
                marks.append(Mark("gpu_memory", t, f"GPU {gpu.index} memory {sign}{size(abs(step))}"))
                self._stepped_bytes = gpu.used_bytes
        low, high = self.load.low_w, self.load.high_w
        if low is not None and high is not None and high - low >= POWER_RANGE_W and self._changed_lately():
            marks.append(Mark("power", t, f"GPU {gpu.index} power moves between {low:.0f} and {high:.0f} W"))
        elif self._works_evenly(gpu):
            marks.append(Mark("power", t, f"GPU {gpu.index} works at {gpu.power_w:.0f} W"))
        copied = max(gpu.pcie_rx_bytes_s or 0, gpu.pcie_tx_bytes_s or 0)
        if copied >= thresholds.PCIE_BYTES_S:
            marks.append(Mark("network", t, f"GPU {gpu.index} copies {rate(copied)} over PCIe", float(copied)))
        return marks

    def _works_evenly(self, gpu: Gpu) -> bool:
        """Busy, and drawing far more than this card does when it idles with a context: no spinning kernel does."""
        if gpu.power_w is None or (gpu.used_bytes or 0) < CONTEXT_BYTES:
            return False
        return (gpu.util_percent or 0) >= 50 and self._power.far_above_idle(gpu.power_w)

    def _changed_lately(self) -> bool:
        """The newest power differs from the one before: a step that is seconds old is no sign of now."""
        values = [p for _, _, p in self._power.samples if p is not None][-3:]
        return len(values) >= 2 and max(values) - min(values) >= POWER_RANGE_W / 2
