"""The driver's own findings are part of every verdict: Xids, lost GPUs, silence."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse.diagnosis.verdict import diagnose
from sgmon.model import Gpu, GpuReading, Snapshot
from tests.diagnosis.world import World

SILENT = GpuReading(
    (Gpu(0, "NVIDIA H200", error="no reading"),),
    unavailable="NVML silent for 12s: the driver does not answer (nvmlDeviceGetName of GPU 1 hangs)",
    remedy="look for Xid in dmesg",
    state="silent",
    failing_s=12.0,
)


def gpu_facts(snapshot: Snapshot) -> list[str]:
    return [fact.text for fact in diagnose(snapshot).evidence if fact.signal == "gpu"]


def test_a_silent_driver_is_a_finding_once_it_lasts() -> None:
    words = gpu_facts(Snapshot(gpu=SILENT))
    assert words == [
        "NVML silent for 12s: the driver does not answer (nvmlDeviceGetName of GPU 1 hangs); "
        "that is a finding about the driver"
    ]
    short = GpuReading(unavailable="NVML silent for 3.0s: it", state="silent", failing_s=3.0)
    assert gpu_facts(Snapshot(gpu=short)) == []
    assert gpu_facts(Snapshot(gpu=GpuReading(unavailable="no NVIDIA driver found", state="no-driver"))) == []


def test_the_silence_is_named_among_what_was_not_seen_too() -> None:
    world = World(2).to("weights").run(5)
    world.store.snapshot = replace(world.store.snapshot, gpu=SILENT)
    verdict = diagnose(world.store.snapshot)
    assert any("NVML silent for 12s" in fact.text for fact in verdict.evidence)
    missing = next(item for item in verdict.missing if item.signal == "gpu")
    assert "NVML silent for 12s" in missing.why
    assert missing.remedy == "look for Xid in dmesg"


def test_xids_and_lost_gpus_are_named_first() -> None:
    gpus = (Gpu(0), Gpu(1, xids=(79, 79), ranks=("TP1",), error="GPU is lost: it fell off the bus"))
    verdict = diagnose(Snapshot(gpu=GpuReading(gpus, source="NVML")))
    assert [(fact.text, fact.rank) for fact in verdict.evidence] == [
        ("GPU 1: the driver reported Xid 79 (fell off the bus) since the watch began", "TP1"),
        ("GPU 1: GPU is lost: it fell off the bus", "TP1"),
    ]
