"""What the NVIDIA driver itself shows: Xids, GPUs that are lost or hang, and its own silence."""

from __future__ import annotations

from sgmon.analyse.gpu.xids import xid_words
from sgmon.model import Evidence, Gpu, Snapshot
from sgmon.text import clean

#: shorter silences are a restart of the NVML child
SILENT_S = 10.0


def driver_facts(snapshot: Snapshot) -> tuple[Evidence, ...]:
    """Loudest first: a GPU that reported an Xid or is gone, then a driver that does not answer."""
    reading = snapshot.gpu
    facts = [
        Evidence("gpu", f"{_name(gpu)}: the driver reported {xid_words(gpu.xids)} since the watch began", _rank(gpu))
        for gpu in reading.gpus
        if gpu.xids
    ]
    if reading.unavailable:
        if reading.state in ("silent", "died") and (reading.failing_s is None or reading.failing_s >= SILENT_S):
            words = f"{clean(reading.unavailable, 160)}; that is a finding about the driver"
            facts.append(Evidence("gpu", words, value=reading.failing_s))
        return tuple(facts)
    facts += [
        Evidence("gpu", f"{_name(gpu)}: {clean(gpu.error, 120)}", _rank(gpu)) for gpu in reading.gpus if gpu.error
    ]
    return tuple(facts)


def _name(gpu: Gpu) -> str:
    return f"GPU {gpu.index}"


def _rank(gpu: Gpu) -> str:
    return gpu.ranks[0] if len(gpu.ranks) == 1 else ""
