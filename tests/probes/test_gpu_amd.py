"""AMD's GPUs by amdsmi, on a double of it: the same probe, deadlines and words as for NVML."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sgmon.collect.gpu import probe as gpu_module
from sgmon.collect.gpu.probe import GpuProbe
from sgmon.collect.gpu.vendors import AMD, NVIDIA, vendor_here
from sgmon.model import Missing

FAKE = Path(__file__).parent.parent / "fakeamdsmi"
MIB = 1 << 20


@pytest.fixture
def state(tmp_path, monkeypatch):
    path = tmp_path / "amd.json"
    monkeypatch.setenv("FAKE_AMDSMI_STATE", str(path))
    monkeypatch.setenv("PYTHONPATH", str(FAKE))

    def write(**values):
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({"gpus": [{"used_mib": 400}] * 2, **values}))
        os.replace(fresh, path)

    write()
    return write


@pytest.fixture
def probe(state, watch, monkeypatch):
    monkeypatch.setattr(gpu_module, "ANSWER_S", 0.6)
    made = GpuProbe(watch(), vendor=AMD)
    yield made
    made.close()


def test_values_in_our_units(state, probe):
    state(gpus=[{"used_mib": 1000, "pids": {"4194303": 900}}, {"used_mib": 283}])
    reading = probe.read()
    assert (reading.unavailable, reading.source, reading.driver) == ("", "AMD SMI", "6.12.12")
    first, second = reading.gpus
    assert (first.name, first.total_bytes, first.used_bytes) == ("AMD Instinct MI300X", 196592 * MIB, 1000 * MIB)
    assert (first.util_percent, first.power_w, first.power_limit_w, first.temperature_c) == (42, 141.0, 750.0, 47)
    assert (first.sm_clock_mhz, first.ecc_errors) == (132, 0)
    assert (first.processes[0].pid, first.processes[0].used_bytes) == (4194303, 900 * MIB)
    assert second.processes == ()
    assert first.missing == ()


def test_not_supported_is_none_with_a_reason(state, probe):
    state(fail={"amdsmi_get_power_info": 2, "amdsmi_get_gpu_total_ecc_count": 10})
    gpu = probe.read().gpus[0]
    assert (gpu.power_w, gpu.ecc_errors) == (None, None)
    assert Missing("power_mw", "AMD SMI error 2: Feature not supported") in gpu.missing
    assert Missing("ecc", "AMD SMI error 10: Permission Denied") in gpu.missing


def test_a_driver_that_is_not_loaded_says_what_helps(state, probe):
    state(init=34)
    reading = probe.read()
    assert (reading.state, reading.unavailable) == ("failed", "AMD SMI error 34: Driver not loaded")
    assert "modprobe amdgpu" in reading.remedy


def test_a_hang_is_named_and_killed(state, probe, clock):
    probe.read()
    state(hang="amdsmi_get_gpu_activity")
    reading = probe.read()
    assert reading.state == "silent"
    assert reading.unavailable.startswith("AMD SMI silent for ")
    assert "amdsmi_get_gpu_activity of GPU 0 hangs" in reading.unavailable
    state()
    clock.shift_s += 62
    assert probe.read().unavailable == ""


def test_no_library_is_said_and_what_helps(watch, monkeypatch, tmp_path):
    (tmp_path / "amdsmi.py").write_text("raise KeyError('libamd_smi.so')")  # what the real package does
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    reading = GpuProbe(watch(), vendor=AMD).read()
    assert reading.state == "no-driver"
    assert "libamd_smi.so" in reading.unavailable
    assert "sgmon[amd]" in reading.remedy


def test_the_vendor_is_the_one_whose_device_is_there(tmp_path):
    assert vendor_here(tmp_path) is NVIDIA
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    assert vendor_here(tmp_path) is AMD
    (tmp_path / "dev/nvidiactl").touch()
    assert vendor_here(tmp_path) is NVIDIA
