"""One look waits for the GPUs, whatever they answer: who holds memory matters before there is a server."""

from __future__ import annotations

import pytest

from sgmon.commands.status import gpus_seen
from sgmon.model import Gpu, GpuReading, Snapshot


@pytest.mark.parametrize(
    ("reading", "seen"),
    [
        (GpuReading(), False),
        (GpuReading((Gpu(0),), source="NVML"), True),
        (GpuReading(source="NVML"), True),  # a node without GPUs
        (GpuReading(unavailable="no NVIDIA driver found", state="no-driver"), True),
    ],
)
def test_gpus_have_answered(reading: GpuReading, seen: bool) -> None:
    assert gpus_seen(Snapshot(gpu=reading)) is seen
