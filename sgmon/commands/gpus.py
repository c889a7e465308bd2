"""One reading of the GPUs, for commands that watch nothing."""

from __future__ import annotations

import threading

from sgmon.collect.gpu.probe import GpuProbe
from sgmon.collect.probes.base import Clock, ProbeError, Watched
from sgmon.model import GpuReading
from sgmon.settings import Settings

NVML_S = 5.0


def ask_gpu(settings: Settings) -> GpuReading | None:
    """One NVML reading, or None when the driver did not answer in ``NVML_S``."""
    answer: list[GpuReading | None] = [None]
    done = threading.Event()

    def ask() -> None:
        probe = GpuProbe(Watched(settings, Clock()))
        try:
            reading = probe.read()
            answer[0] = reading if isinstance(reading, GpuReading) else None
        except ProbeError as err:
            answer[0] = GpuReading(unavailable=err.words, remedy=err.remedy)
        finally:
            done.set()
            probe.close()

    threading.Thread(target=ask, daemon=True, name="one-nvml-look").start()
    done.wait(NVML_S)
    return answer[0]
