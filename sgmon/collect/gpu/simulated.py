"""GPUs of the simulated server: a JSON file that it replaces by rename. Always marked as simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sgmon.collect.gpu.answer import name_of
from sgmon.collect.probes.base import ProbeError
from sgmon.model import Gpu, GpuProcess, GpuReading
from sgmon.text import clean


def read_simulated(path: Path, proc_root: Path) -> GpuReading:
    """{"gpus": [{index, name, total_bytes, used_bytes, util_percent, power_w, temperature_c,
    processes: [{pid, used_bytes, name}]}]}; what is not there is None."""
    try:
        items = json.loads(path.read_bytes())["gpus"]
        gpus = tuple(_gpu(place, item, proc_root) for place, item in enumerate(items))
    except FileNotFoundError:
        raise ProbeError("the file of simulated GPUs is gone", "is the simulated server still running?") from None
    except OSError as err:
        raise ProbeError(f"the file of simulated GPUs cannot be read: {err.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise ProbeError(f"the file of simulated GPUs is not understood: {type(err).__name__}: {err}") from None
    return GpuReading(gpus=gpus, driver="simulated", source="simulated", simulated=True)


def _gpu(place: int, item: dict[str, Any], proc_root: Path) -> Gpu:
    return Gpu(
        index=int(item.get("index", place)),
        name=clean(str(item.get("name", "")), 60),
        uuid=str(item.get("uuid", "")),
        total_bytes=item.get("total_bytes"),
        used_bytes=item.get("used_bytes"),
        util_percent=item.get("util_percent"),
        power_w=item.get("power_w"),
        power_limit_w=item.get("power_limit_w"),
        temperature_c=item.get("temperature_c"),
        sm_clock_mhz=item.get("sm_clock_mhz"),
        pcie_rx_bytes_s=item.get("pcie_rx_bytes_s"),
        throttle=tuple(str(reason) for reason in item.get("throttle", ())),
        processes=tuple(
            GpuProcess(
                pid=int(holder["pid"]),
                used_bytes=holder.get("used_bytes"),
                name=clean(str(holder.get("name") or name_of(proc_root, int(holder["pid"]))), 120),
            )
            for holder in item.get("processes", ())
        ),
    )
