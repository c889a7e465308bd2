"""One GPU over the last ten seconds: does its power move, is it pinned, did its memory step."""

from __future__ import annotations

from collections import deque

from sgmon.analyse import thresholds
from sgmon.model import Gpu, Mark
from sgmon.units import rate, size

WINDOW_S = 10.0
MIN_SAMPLES = 5


class GpuHistory:
    """Utilisation and power samples of one GPU, and the memory at the last step."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int | None, float | None]] = deque()
        self._stepped_bytes: int | None = None
        self._idle_w: float | None = None

    def add(self, gpu: Gpu, t: float) -> list[Mark]:
        """Take one reading; the signs of life in it. A falling memory is a sign as well: a buffer was freed."""
        self._samples.append((t, gpu.util_percent, gpu.power_w))
        while t - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()
        marks = []
        if gpu.used_bytes is not None:
            if self._stepped_bytes is None:
                self._stepped_bytes = gpu.used_bytes
            step = gpu.used_bytes - self._stepped_bytes
            if abs(step) >= thresholds.GPU_BYTES:
                sign = "+" if step > 0 else "-"
                marks.append(Mark("gpu_memory", t, f"GPU {gpu.index} memory {sign}{size(abs(step))}"))
                self._stepped_bytes = gpu.used_bytes
        low, high = self.power_w()
        if low is not None and high is not None and high - low >= thresholds.POWER_RANGE_W and self._moved_lately():
            marks.append(Mark("power", t, f"GPU {gpu.index} power moves between {low:.0f} and {high:.0f} W"))
        if not any(m.signal == "power" for m in marks) and self._works_evenly(gpu):
            marks.append(Mark("power", t, f"GPU {gpu.index} works at {gpu.power_w:.0f} W"))
        copied = max(gpu.pcie_rx_bytes_s or 0, gpu.pcie_tx_bytes_s or 0)
        if copied >= thresholds.PCIE_BYTES_S:
            marks.append(Mark("network", t, f"GPU {gpu.index} copies {rate(copied)} over PCIe", float(copied)))
        return marks

    def _works_evenly(self, gpu: Gpu) -> bool:
        """Busy, and drawing far more than this card did when it idled with a context: no spinning kernel does."""
        if gpu.power_w is None or (gpu.used_bytes or 0) < thresholds.CONTEXT_BYTES:
            return False
        self._idle_w = gpu.power_w if self._idle_w is None else min(self._idle_w, gpu.power_w)
        return (gpu.util_percent or 0) >= 50 and gpu.power_w >= thresholds.POWER_WORK * self._idle_w

    def util(self) -> tuple[int | None, int | None]:
        """(lowest, highest) utilisation of the window, None until there are enough samples."""
        values = [u for _, u, _ in self._samples if u is not None]
        return (min(values), max(values)) if len(values) >= MIN_SAMPLES else (None, None)

    def power_w(self) -> tuple[float | None, float | None]:
        values = [p for _, _, p in self._samples if p is not None]
        return (min(values), max(values)) if len(values) >= MIN_SAMPLES else (None, None)

    def _moved_lately(self) -> bool:
        """The newest power differs from the one before: a step that is seconds old is no sign of now."""
        values = [p for _, _, p in self._samples if p is not None][-3:]
        return len(values) >= 2 and max(values) - min(values) >= thresholds.POWER_RANGE_W / 2
