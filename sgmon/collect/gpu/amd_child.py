"""The AMD SMI process: AMD's GPUs by the ``amdsmi`` package (optional extra "amd", or the one of ROCm itself).

The only file that imports amdsmi. Shapes and units are those of amdsmi 7.0.2; it has not seen a real AMD card yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sgmon.collect.gpu.gateway import Place, serve

#: amdsmi status -> our code (see gpu_gateway.CODES)
_CODES = {2: 3, 3: 3, 10: 4, 15: 20, 31: 15, 34: 9}
_NO_LIBRARY = 12
_MIB = 1024 * 1024
_NOTHING = (None, "N/A", 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
_MOST_WATTS = 10_000


class NoLibraryError(Exception):
    """The package or libamd_smi.so is not there."""


class AmdReader:
    """All amdsmi calls. smi None: it could not be imported, for the reason ``why``."""

    def __init__(self, smi: Any, place: Place, why: str = "") -> None:
        self._smi = smi
        self._place = place
        self._why = why
        self.errors: tuple[type[Exception], ...] = (NoLibraryError, *((smi.AmdSmiException,) if smi else ()))

    def init(self) -> dict[str, Any]:
        if self._smi is None:
            raise NoLibraryError(self._why)
        self._place("amdsmi_init")
        self._smi.amdsmi_init()
        handles = self._handles()
        if not handles:
            return {"driver": ""}
        self._place("amdsmi_get_gpu_driver_info")
        return {"driver": str(self._smi.amdsmi_get_gpu_driver_info(handles[0])["driver_version"])}

    def gpus(self, skip: frozenset[int]) -> dict[str, Any]:
        found = [
            {"index": index, "skipped": True} if index in skip else self._gpu(index, handle)
            for index, handle in enumerate(self._handles())
        ]
        self._place("")
        return {"gpus": found, "pcie_round": 0}

    def explain(self, err: Exception) -> tuple[str, int]:
        if isinstance(err, NoLibraryError):
            return str(err), _NO_LIBRARY
        status = getattr(err, "err_code", None)
        words = str(getattr(err, "err_info", "") or err).partition(" - ")[2] or str(err)
        return f"AMD SMI error {status}: {words.strip()}", _CODES.get(status or -1, 999)

    def _handles(self) -> list[Any]:
        self._place("amdsmi_get_processor_handles")
        return list(self._smi.amdsmi_get_processor_handles())

    def _gpu(self, index: int, handle: Any) -> dict[str, Any]:
        smi = self._smi
        gpu: dict[str, Any] = {"index": index, "missing": {}, "minor": None}

        def get(name: str, call: str, do: Callable[[], Any]) -> Any:
            self._place(call, index)
            try:
                return do()
            except self.errors as err:
                gpu["missing"][name] = self.explain(err)[0]
                return None

        def put(name: str, value: Any, scale: float = 1) -> None:
            if value in _NOTHING:
                gpu["missing"].setdefault(name, "not available on this GPU")
            else:
                gpu[name] = int(value * scale)

        gpu["uuid"] = str(
            get("uuid", "amdsmi_get_gpu_device_uuid", lambda: smi.amdsmi_get_gpu_device_uuid(handle)) or ""
        )
        asic = get("name", "amdsmi_get_gpu_asic_info", lambda: smi.amdsmi_get_gpu_asic_info(handle)) or {}
        gpu["name"] = str(asic.get("market_name") or "")
        vram = get("memory", "amdsmi_get_gpu_vram_usage", lambda: smi.amdsmi_get_gpu_vram_usage(handle)) or {}
        put("total", vram.get("vram_total"), _MIB)
        put("used", vram.get("vram_used"), _MIB)
        busy = get("util", "amdsmi_get_gpu_activity", lambda: smi.amdsmi_get_gpu_activity(handle)) or {}
        put("util", busy.get("gfx_activity"))
        power = get("power_mw", "amdsmi_get_power_info", lambda: smi.amdsmi_get_power_info(handle)) or {}
        put("power_mw", _first(power, "current_socket_power", "average_socket_power", "socket_power"), 1000)
        limit = _first(power, "power_limit")
        put(
            "limit_mw", limit, 1000 if limit is None or limit < _MOST_WATTS else 0.001
        )  # newer versions give microwatts
        put("temperature", get("temperature", "amdsmi_get_temp_metric", lambda: self._temperature(handle)))
        clock = get(
            "sm_clock", "amdsmi_get_clock_info", lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.GFX)
        )
        put("sm_clock", (clock or {}).get("clk"))
        ecc = get("ecc", "amdsmi_get_gpu_total_ecc_count", lambda: smi.amdsmi_get_gpu_total_ecc_count(handle)) or {}
        put("ecc", ecc.get("uncorrectable_count"))
        listed = get("processes", "amdsmi_get_gpu_process_list", lambda: smi.amdsmi_get_gpu_process_list(handle))
        gpu["processes"] = [_holder(one) for one in listed or ()]
        return gpu

    def _temperature(self, handle: Any) -> Any:
        smi = self._smi
        return smi.amdsmi_get_temp_metric(
            handle, smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
        )


def _first(values: Mapping[str, Any], *names: str) -> Any:
    return next((values[name] for name in names if values.get(name) not in _NOTHING), None)


def _holder(process: Mapping[str, Any]) -> tuple[int, int | None]:
    used = (process.get("memory_usage") or {}).get("vram_mem")
    return int(process["pid"]), None if used in _NOTHING else int(used)


def open_amd(place: Place) -> AmdReader:
    """The gateway; without the library it says so when asked."""
    try:
        import amdsmi
    except (
        ImportError,
        OSError,
        KeyError,
        AttributeError,
    ) as err:  # without libamd_smi.so the import ends in a KeyError
        return AmdReader(None, place, f"{type(err).__name__}: {err}")
    return AmdReader(amdsmi, place)


def main() -> None:
    """What ``sgmon.collect.probes.child`` starts."""
    serve(open_amd)
