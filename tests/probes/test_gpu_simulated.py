from __future__ import annotations

import json

import pytest

from sgmon.collect.gpu.probe import GpuProbe
from sgmon.collect.probes.base import ProbeError


def test_simulated_gpus_are_marked(tmp_path, watch):
    path = tmp_path / "gpus.json"
    path.write_text(
        json.dumps(
            {
                "gpus": [
                    {
                        "index": 0,
                        "name": "NVIDIA H200",
                        "total_bytes": 10,
                        "used_bytes": 5,
                        "util_percent": 100,
                        "power_w": 100.5,
                        "temperature_c": 40,
                        "processes": [{"pid": 5, "used_bytes": 5}],
                    }
                ]
            }
        )
    )
    reading = GpuProbe(watch(simulated_gpus=str(path))).read()
    assert (reading.simulated, reading.source) == (True, "simulated")
    gpu = reading.gpus[0]
    assert (gpu.used_bytes, gpu.power_w, gpu.sm_clock_mhz) == (5, 100.5, None)
    assert (gpu.processes[0].pid, gpu.processes[0].used_bytes) == (5, 5)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"gpus": [1]}', '{"gpus": null}'])
def test_bad_file_is_a_sentence(tmp_path, watch, content):
    path = tmp_path / "gpus.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ProbeError, match="simulated GPUs"):
        GpuProbe(watch(simulated_gpus=str(path))).read()
