"""A double of AMD's ``amdsmi`` 7.0 for the tests: the calls that the gateway makes, in their real shapes and units.

Its state is a JSON file named by FAKE_AMDSMI_STATE: {"gpus": [{"used_mib": 400, "pids": {"4711": 300}}], "init": 34,
"fail": {"amdsmi_get_power_info": 2}, "hang": "amdsmi_get_gpu_activity"}.
"""

from __future__ import annotations

import enum
import json
import os
import pathlib
import time


class AmdSmiException(Exception):
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code: int) -> None:
        super().__init__(err_code)
        self.err_code = err_code
        self.err_info = {
            2: "AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported",
            10: "AMDSMI_STATUS_NO_PERM - Permission Denied",
            34: "AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded",
        }[err_code]


class AmdSmiClkType(enum.IntEnum):
    GFX = 0


class AmdSmiTemperatureType(enum.IntEnum):
    HOTSPOT = 1


class AmdSmiTemperatureMetric(enum.IntEnum):
    CURRENT = 0


def _state(call: str) -> dict:
    state = json.loads(pathlib.Path(os.environ["FAKE_AMDSMI_STATE"]).read_text())
    if state.get("hang") == call:
        time.sleep(60)
    if call in state.get("fail", {}):
        raise AmdSmiLibraryException(state["fail"][call])
    return state


def amdsmi_init() -> None:
    state = _state("amdsmi_init")
    if state.get("init"):
        raise AmdSmiLibraryException(state["init"])


def amdsmi_get_processor_handles() -> list[int]:
    return list(range(len(_state("amdsmi_get_processor_handles")["gpus"])))


def amdsmi_get_gpu_driver_info(handle: int) -> dict:
    return {"driver_name": "amdgpu", "driver_version": "6.12.12", "driver_date": "N/A"}


def amdsmi_get_gpu_device_uuid(handle: int) -> str:
    return f"{handle:02x}ff74a1-0000-1000-80d8-000000000000"


def amdsmi_get_gpu_asic_info(handle: int) -> dict:
    _state("amdsmi_get_gpu_asic_info")
    return {"market_name": "AMD Instinct MI300X", "vendor_id": "0x1002", "num_compute_units": 304}


def amdsmi_get_gpu_vram_usage(handle: int) -> dict:
    return {"vram_total": 196592, "vram_used": _state("amdsmi_get_gpu_vram_usage")["gpus"][handle]["used_mib"]}


def amdsmi_get_gpu_activity(handle: int) -> dict:
    _state("amdsmi_get_gpu_activity")
    return {"gfx_activity": 42, "umc_activity": 3, "mm_activity": "N/A"}


def amdsmi_get_power_info(handle: int) -> dict:
    _state("amdsmi_get_power_info")
    return {
        "socket_power": 0xFFFFFFFF,
        "current_socket_power": 141,
        "average_socket_power": "N/A",
        "power_limit": 750,
    }


def amdsmi_get_temp_metric(handle: int, sensor: object, metric: object) -> int:
    return 47


def amdsmi_get_clock_info(handle: int, clock: object) -> dict:
    return {"clk": 132, "min_clk": 132, "max_clk": 2100}


def amdsmi_get_gpu_total_ecc_count(handle: int) -> dict:
    _state("amdsmi_get_gpu_total_ecc_count")
    return {"correctable_count": 5, "uncorrectable_count": 0, "deferred_count": 0}


def amdsmi_get_gpu_process_list(handle: int) -> list[dict]:
    pids = _state("amdsmi_get_gpu_process_list")["gpus"][handle].get("pids", {})
    return [
        {"name": "python3", "pid": int(pid), "mem": 0, "memory_usage": {"gtt_mem": 0, "vram_mem": mib << 20}}
        for pid, mib in pids.items()
    ]
