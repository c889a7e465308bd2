"""GPUs through their vendor's library in a child process: whatever the driver does, this answers within seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sgmon.collect.gpu.answer import PcieAge, gpu_from, name_of
from sgmon.collect.gpu.simulated import read_simulated
from sgmon.collect.gpu.vendors import Vendor, vendor_here
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.child import ChildDiedError, GpuChild
from sgmon.model import Gpu, GpuLink, GpuReading
from sgmon.units import duration

ANSWER_S = 2.0  # an answer takes 54 us per GPU on an H200; past this the driver hangs
START_S = 10.0  # Python and pynvml from a cold disk
INIT_S = 30.0  # nvmlInit brings up every card when persistence mode is off: seconds each
STARVED_S = 10.0  # a runnable child only waits for a CPU; so long it may also be a driver that spins
BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
NO_DRIVER_RETRY_S = 60.0
GPU_RETRY_S = 60.0  # a GPU whose call hung is left out for so long
REINIT_S = 30.0  # NVML sees GPUs that join or come back only after a new nvmlInit
_NO_LIBRARY = 12
_NO_ANSWER = "the driver does not answer"


class GpuProbe:
    """Readings of all GPUs, or in words why there are none. ``read`` blocks for 2 s at most (10 s at the start)."""

    name = "gpu"
    kind = "gpu"
    deadline_s = 15.0

    def __init__(
        self, watched: Watched, start: Callable[[], GpuChild] | None = None, vendor: Vendor | None = None
    ) -> None:
        self._watched = watched
        self._vendor = vendor or vendor_here()
        self.interval_s = watched.settings.interval_s
        self._now = watched.clock.now
        self._start = start or (lambda: GpuChild(self._vendor.module, self._now))
        self._child: GpuChild | None = None
        self._stuck: list[GpuChild] = []  # killed, but still in the kernel
        self._phase = ""  # what the child was asked: "start", "init", "answer"; "gpus": nothing, it waits for us
        self._asked_t = 0.0
        self._failures = 0
        self._retry_t = 0.0
        self._failing_since_t: float | None = None
        self._state = ""
        self._words = ""
        self._remedy = ""
        self._driver = ""
        self._known: dict[int, Gpu] = {}
        self._skip: dict[int, tuple[float, str]] = {}  # GPU -> (asked again at, words)
        self._init_t = 0.0
        self._lost = False
        self._pcie = PcieAge()
        self._xids: dict[int, tuple[int, ...]] = {}
        self._xids_before: dict[int, tuple[int, ...]] = {}
        self._off_told = False

    def read(self) -> GpuReading | None:
        if not self._watched.settings.gpu:
            if self._off_told:
                return None
            self._off_told = True
            return GpuReading(unavailable="reading GPUs is switched off", state="off")
        server = self._watched.server
        simulated = (server.simulated_gpus if server else "") or self._watched.settings.simulated_gpus
        if simulated:
            return read_simulated(Path(simulated), Path(self._watched.settings.proc_root))
        return self._read_nvml()

    def close(self) -> None:
        """Kill the child; never waits for one that is stuck in the kernel."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _read_nvml(self) -> GpuReading:
        now = self._now()
        if self._lost and now - self._init_t > REINIT_S:
            self._lost = False
            self._drop()
        if self._child is None:
            if now < self._retry_t:
                return self._failing_reading()
            self._stuck = [child for child in self._stuck if not child.gone()]
            if self._stuck:
                where = self._stuck[0].where()
                self._fail("silent", f"{_NO_ANSWER}, and the call cannot even be killed ({where})", self._vendor.look)
                return self._failing_reading()
            try:
                self._begin()
            except OSError as err:
                self._fail(
                    "failed",
                    f"the {self._vendor.source} child cannot be started: {err.strerror}",
                    "free memory or processes",
                )
                return self._failing_reading()
        try:
            return self._converse()
        except ChildDiedError as err:
            self._drop()
            self._fail("died", f"{self._vendor.source} {err.words}", self._remedy_of_death(err.words))
        return self._failing_reading()

    def _begin(self) -> None:
        """Raises OSError."""
        self._child = self._start()
        self._phase = "start"
        self._asked_t = self._now()

    def _converse(self) -> GpuReading:
        """One step after the other: start, init, gpus. Each waits 2 s at most."""
        child = self._child
        assert child is not None
        if self._phase == "start":
            if child.receive(START_S) is None:
                return self._give_up("its process does not start")
            child.send({"ask": "init"})
            self._phase, self._asked_t = "init", self._now()
        if self._phase == "init":
            answer = child.receive(ANSWER_S)
            if answer is None:
                return self._init_is_late()
            if "error" in answer:
                return self._refused(answer)
            self._driver = str(answer["ok"]["driver"])
            self._init_t = self._now()
            self._phase = "gpus"
        if self._phase == "gpus":
            now = self._now()
            child.send({"ask": "gpus", "skip": [gpu for gpu, (until, _) in self._skip.items() if now < until]})
            self._phase, self._asked_t = "answer", now
        answer = child.receive(ANSWER_S)
        if answer is None:
            return self._hung(child)
        self._phase = "gpus"
        if "error" in answer:
            return self._refused(answer)
        return self._good(answer["ok"])

    def _good(self, answer: dict[str, Any]) -> GpuReading:
        self._failures = 0
        self._failing_since_t = None
        self._state = self._words = self._remedy = ""
        gpus = []
        fresh_pcie = self._pcie.fresh(int(answer.get("pcie_round", 0)), self._now())
        root = Path(self._watched.settings.proc_root)
        for item in answer["gpus"]:
            gpu = gpu_from(item, self._known.get(item["index"]), lambda pid: name_of(root, pid), fresh_pcie)
            gpu = self._with_xids(gpu, item.get("xids", ()))
            if item.get("skipped"):
                gpu = self._skipped(gpu)
            elif gpu.index in self._skip:
                del self._skip[gpu.index]
            if item.get("code"):
                self._lost = True
            gpus.append(gpu)
        if self._known.keys() - {gpu.index for gpu in gpus}:
            self._lost = True
        self._known = {gpu.index: gpu for gpu in gpus}
        if gpus and all(item.get("skipped") for item in answer["gpus"]):
            why = f"{self._vendor.source} silent: no GPU answers ({gpus[0].error.partition(': ')[2]})"
            return GpuReading(
                tuple(gpus),
                self._driver,
                self._vendor.source,
                unavailable=why,
                remedy=self._vendor.look,
                state="silent",
            )
        links = tuple(GpuLink(*link) for link in answer.get("links", ()))
        return GpuReading(gpus=tuple(gpus), driver=self._driver, source=self._vendor.source, links=links)

    def _with_xids(self, gpu: Gpu, new: Sequence[int]) -> Gpu:
        """Xids of this child, after those that earlier children saw."""
        xids = (*self._xids_before.get(gpu.index, ()), *new)
        self._xids[gpu.index] = xids
        return replace(gpu, xids=xids)

    def _skipped(self, gpu: Gpu) -> Gpu:
        _, why = self._skip[gpu.index]
        return replace(gpu, error=why)

    def _init_is_late(self) -> GpuReading:
        """Reported after 2 s, but given 30 s: with persistence mode off a good init takes seconds."""
        what = f"{_NO_ANSWER} (nvmlInit does not return)"
        if self._now() - self._asked_t > INIT_S:
            return self._give_up(what)
        self._mark("silent", what, f"{self._vendor.look}; sudo nvidia-smi -pm 1 makes a slow start fast")
        return self._failing_reading()

    def _hung(self, child: GpuChild) -> GpuReading:
        """A call overran. The GPU that it was about is left out next time, so that it does not hide the others."""
        if child.runnable() and self._now() - self._asked_t < STARVED_S:
            self._mark("silent", "its process waits for a CPU: this machine is overloaded", "")
            return self._failing_reading()
        call, _, gpu = child.where().partition(" ")
        if gpu.isdigit():
            self._skip[int(gpu)] = (self._now() + GPU_RETRY_S, f"does not answer: {call} hangs")
        place = f" ({call} of GPU {gpu} hangs)" if gpu else f" ({call} hangs)" if call else ""
        return self._give_up(_NO_ANSWER + place)

    def _give_up(self, what: str) -> GpuReading:
        self._drop()
        self._fail("silent", what, f"{self._vendor.look}; the driver may need a reload or a reboot")
        return self._failing_reading()

    def _refused(self, answer: dict[str, Any]) -> GpuReading:
        code = int(answer.get("code", 0))
        self._drop()
        if code == _NO_LIBRARY:
            self._fail("no-driver", self._vendor.no_library, self._vendor.remedies[code])
            self._retry_t = self._now() + NO_DRIVER_RETRY_S
        else:
            self._fail("failed", str(answer["error"]), self._vendor.remedies.get(code, ""))
        return self._failing_reading()

    def _drop(self) -> None:
        if self._child is not None and not self._child.kill():
            self._stuck.append(self._child)
        self._child = None
        self._xids_before = dict(self._xids)

    def _fail(self, state: str, what: str, remedy: str) -> None:
        self._mark(state, what, remedy)
        self._retry_t = self._now() + BACK_OFF_S[min(self._failures, len(BACK_OFF_S) - 1)]
        self._failures += 1

    def _mark(self, state: str, what: str, remedy: str) -> None:
        if self._failing_since_t is None:
            self._failing_since_t = min(self._asked_t, self._now()) if state == "silent" else self._now()
        self._state, self._words, self._remedy = state, what, remedy

    def _failing_reading(self) -> GpuReading:
        since = self._failing_since_t if self._failing_since_t is not None else self._now()
        for_s = self._now() - since
        words = self._words
        if self._state == "silent":
            words = f"{self._vendor.source} silent for {duration(for_s)}: {self._words}"
        return GpuReading(
            gpus=tuple(
                Gpu(index=g.index, name=g.name, uuid=g.uuid, total_bytes=g.total_bytes, error="no reading")
                for g in self._known.values()
            ),
            driver=self._driver,
            source=self._vendor.source,
            unavailable=words,
            remedy=self._remedy,
            state=self._state,
            failing_s=for_s,
        )

    def _remedy_of_death(self, words: str) -> str:
        if "No module" in words or "pynvml" in words:
            return f"pip install {self._vendor.package}"
        if "SIGKILL" in words:
            return "something killed it: the OOM killer (dmesg), or a person"
        return f"the driver's library crashed: {self._vendor.look}"
