"""The NVML process: the gateway to NVIDIA's GPUs (what a gateway is: ``gpu_gateway.py``).

The only file that imports pynvml. It may hang in the driver or be killed at any moment: the parent
(``sgmon.collect.gpu.probe``) watches it. NVML sees GPUs that join or come back only after a new nvmlInit: for that
the parent starts a new child.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from sgmon.collect.gpu.background import PcieRates, Xids
from sgmon.collect.gpu.gateway import Place, serve
from sgmon.collect.gpu.links import links

_NOT_SUPPORTED = 3

#: bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h); bit 0 (idle) is no throttling
THROTTLE = (
    (0x002, "application clocks"),
    (0x004, "power cap"),
    (0x008, "hardware slowdown"),
    (0x010, "sync boost"),
    (0x020, "thermal (software)"),
    (0x040, "thermal (hardware)"),
    (0x080, "power brake"),
    (0x100, "display clock"),
)


class NvidiaReader:
    """All NVML calls. Every value that NVML does not give is absent and named in "missing"."""

    def __init__(self, nvml: Any, place: Place) -> None:
        self._nvml = nvml
        self._place = place
        self._unsupported: set[tuple[int, str]] = set()
        self._links: list[tuple[int, int, str, bool | None]] | None = None
        self._pcie: PcieRates | None = None
        self._xids: Xids | None = None
        self.errors: tuple[type[Exception], ...] = (nvml.NVMLError,)

    def init(self) -> dict[str, Any]:
        """nvmlInit."""
        self._place("nvmlInit")
        self._nvml.nvmlInit()
        self._place("nvmlSystemGetDriverVersion")
        return {"driver": _text(self._nvml.nvmlSystemGetDriverVersion())}

    def gpus(self, skip: frozenset[int]) -> dict[str, Any]:
        """One reading of every GPU."""
        self._place("nvmlDeviceGetCount")
        count = self._nvml.nvmlDeviceGetCount()
        gpus = [{"index": i, "skipped": True} if i in skip else self._gpu(i) for i in range(count)]
        self._place("")
        if self._pcie is None and count and not skip:  # only beside calls that came back
            self._pcie, self._xids = PcieRates(self._nvml), Xids(self._nvml, count)
            self._links = links(self._nvml, count, self._place)
        return {"gpus": gpus, "links": self._links or [], "pcie_round": self._pcie.round if self._pcie else 0}

    def explain(self, err: Any) -> tuple[str, int]:
        """(words, NVML code)."""
        return words(err), err.value

    def _gpu(self, index: int) -> dict[str, Any]:
        nvml = self._nvml
        try:
            self._place("nvmlDeviceGetHandleByIndex", index)
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            self._place("nvmlDeviceGetUUID", index)
            uuid = _text(nvml.nvmlDeviceGetUUID(handle))
        except nvml.NVMLError as err:
            return {"index": index, "error": words(err), "code": err.value}
        gpu: dict[str, Any] = {"index": index, "uuid": uuid, "missing": {}}
        get = _Getter(self, index, gpu)
        get("name", "nvmlDeviceGetName", lambda: _text(nvml.nvmlDeviceGetName(handle)))
        get("minor", "nvmlDeviceGetMinorNumber", lambda: nvml.nvmlDeviceGetMinorNumber(handle))
        memory = get("memory", "nvmlDeviceGetMemoryInfo_v2", lambda: self._memory_v2(handle))
        if memory is None and not get.lost:
            gpu["missing"].pop("memory", None)
            memory = get("memory", "nvmlDeviceGetMemoryInfo", lambda: self._memory_v1(handle))
        gpu.update(gpu.pop("memory", None) or {})
        get("util", "nvmlDeviceGetUtilizationRates", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        get("power_mw", "nvmlDeviceGetPowerUsage", lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        get("limit_mw", "nvmlDeviceGetEnforcedPowerLimit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        get("temperature", "nvmlDeviceGetTemperature", lambda: self._temperature(handle))
        get("sm_clock", "nvmlDeviceGetClockInfo", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        get("throttle", "nvmlDeviceGetCurrentClocksEventReasons", lambda: self._throttle(handle))
        get("ecc", "nvmlDeviceGetTotalEccErrors", lambda: self._ecc(handle))
        get("processes", "nvmlDeviceGetComputeRunningProcesses", lambda: self._processes(handle))
        if get("mig", "nvmlDeviceGetMigMode", lambda: bool(nvml.nvmlDeviceGetMigMode(handle)[0])):
            gpu["slices"] = self._slices(handle, index)
        if self._pcie is not None:
            gpu["pcie"] = self._pcie.rates.get(index)
        if self._xids is not None:
            gpu["xids"] = self._xids.seen.get(index, [])
        if get.lost:
            why, code = get.lost
            return {"index": index, "uuid": uuid, "name": gpu.get("name", ""), "error": why, "code": code}
        return gpu

    def _memory_v2(self, handle: Any) -> dict[str, int]:
        info = self._nvml.nvmlDeviceGetMemoryInfo(handle, version=self._nvml.nvmlMemory_v2)
        return {"total": info.total, "used": info.used, "reserved": info.reserved}

    def _memory_v1(self, handle: Any) -> dict[str, int]:
        """v1 counts the driver's reserve as used (0.60 GiB on an H200) and does not tell it."""
        info = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        return {"total": info.total, "used_v1": info.used}

    def _temperature(self, handle: Any) -> int:
        nvml = self._nvml
        try:
            return int(nvml.nvmlDeviceGetTemperatureV(handle, nvml.NVML_TEMPERATURE_GPU))
        except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported, AttributeError):
            return int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))

    def _throttle(self, handle: Any) -> list[str]:
        nvml = self._nvml
        try:
            bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
        except (nvml.NVMLError_FunctionNotFound, AttributeError):
            bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return [name for bit, name in THROTTLE if bits & bit]

    def _ecc(self, handle: Any) -> int:
        """Uncorrected errors since the driver was loaded."""
        nvml = self._nvml
        return int(
            nvml.nvmlDeviceGetTotalEccErrors(handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
        )

    def _processes(self, handle: Any) -> list[tuple[int, int | None]]:
        nvml = self._nvml
        try:
            found = nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
        except nvml.NVMLError_FunctionNotFound:
            found = nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)
        return [(process.pid, process.usedGpuMemory) for process in found]

    def _slices(self, handle: Any, index: int) -> list[dict[str, Any]]:
        nvml = self._nvml
        slices: list[dict[str, Any]] = []
        try:
            for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
                self._place("nvmlDeviceGetMigDeviceHandleByIndex", index)
                try:
                    part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)
                except nvml.NVMLError_NotFound:
                    continue
                slices.append(self._slice(part, slot, index))
        except nvml.NVMLError:
            pass
        return slices

    def _slice(self, part: Any, slot: int, index: int) -> dict[str, Any]:
        nvml = self._nvml
        entry: dict[str, Any] = {"slot": slot, "missing": {}}
        get = _Getter(self, index, entry)
        get("name", "nvmlDeviceGetName", lambda: _text(nvml.nvmlDeviceGetName(part)))
        get("uuid", "nvmlDeviceGetUUID", lambda: _text(nvml.nvmlDeviceGetUUID(part)))
        get("memory", "nvmlDeviceGetMemoryInfo", lambda: self._memory_v1(part))
        get("processes", "nvmlDeviceGetComputeRunningProcesses", lambda: self._processes(part))
        entry.update(entry.pop("memory", None) or {})
        return entry

    def call(self, index: int, name: str, do: Callable[[], Any]) -> tuple[Any, str, int]:
        """(value, why not, NVML code). What is not supported once is not asked again until the next init."""
        if (index, name) in self._unsupported:
            return None, "not supported by this GPU", _NOT_SUPPORTED
        self._place(name, index)
        try:
            return do(), "", 0
        except self._nvml.NVMLError as err:
            if err.value == _NOT_SUPPORTED:
                self._unsupported.add((index, name))
            return None, words(err), err.value


class _Getter:
    """Puts one value into ``target``, or the reason into target["missing"]. ``lost`` is set when the GPU is gone."""

    def __init__(self, reader: NvidiaReader, index: int, target: dict[str, Any]) -> None:
        self._reader = reader
        self._index = index
        self._target = target
        self.lost: tuple[str, int] | None = None

    def __call__(self, key: str, name: str, do: Callable[[], Any]) -> Any:
        if self.lost:
            return None
        value, why, code = self._reader.call(self._index, name, do)
        if code in (1, 9, 15, 16):  # uninitialised, driver not loaded, lost, needs a reset: no other call will do
            self.lost = (why, code)
        elif why:
            self._target["missing"][key] = why
        else:
            self._target[key] = value
        return value


#: NVML codes whose own text is not enough
_WORDS = {
    3: "not supported by this GPU",
    4: "no permission",
    9: "the NVIDIA driver is not loaded",
    12: "libnvidia-ml.so.1 was not found",
    15: "GPU is lost: it fell off the bus or cannot be reached",
    16: "GPU needs a reset",
    17: "the GPU control device is blocked by the operating system or a cgroup",
    18: "the NVIDIA driver and libnvidia-ml.so.1 differ in version",
    20: "not enough memory for the NVML call",
}


def words(err: Any) -> str:
    """An NVML error in words."""
    return _WORDS.get(err.value) or f"NVML error {err.value}: {str(err).rstrip('.')}"


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def open_nvml(place: Place) -> NvidiaReader:
    """The gateway to NVML."""
    sys.modules.setdefault("ctypes.util", _SearchedLater("ctypes.util"))
    import pynvml  # only this process may have it: it costs 30 ms and 2 MiB

    return NvidiaReader(pynvml, place)


class _SearchedLater(ModuleType):
    """ctypes.util for pynvml, which imports it for ``find_library`` and does not call that: what comes with it
    (shutil, subprocess, tempfile, random) takes 1.8 MiB and 15 ms."""

    @staticmethod
    def find_library(name: str) -> str | None:
        """What the real one finds."""
        del sys.modules["ctypes.util"]
        from ctypes.util import find_library

        return find_library(name)


def main() -> None:
    """What ``sgmon.collect.probes.child`` starts."""
    serve(open_nvml)
