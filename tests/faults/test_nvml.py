"""NVML that hangs, crashes, loses GPUs or is not there: values are unknown with the reason, never 0."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest

from sgmon.collect.gpu import probe as gpu_module
from sgmon.collect.probes import child as child_module
from sgmon.settings import Settings
from tests.fakenvml.library import State
from tests.faults.screen import Screen
from tests.faults.watching import Watch, probes_of, watching
from tests.faults.world import World

MIB = 1 << 20
USED = ("used_bytes", "util_percent", "power_w", "temperature_c")


@pytest.fixture
def watch(world: World, screen: Screen, nvml: State, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """On an NVML of two GPUs that answers."""
    monkeypatch.setattr(gpu_module, "ANSWER_S", 0.5)
    nvml.write("count 2", "gpu * mem 5000")
    settings = Settings(proc_root=str(world.fake), interval_s=0.2)
    with watching(screen, settings, probes_of("server", "procs", "log", "gpu")) as made:
        yield made


def knows_gpus(json: dict) -> bool:
    return bool(json["gpus"]) and all(gpu["used_bytes"] == 5000 * MIB for gpu in json["gpus"])


def test_hang_in_init(watch: Watch, nvml: State) -> None:
    nvml.write("count 2", "init_delay 60")
    watch.engine.source._threads[-1].probe._drop()  # type: ignore[attr-defined]  # a new child loads it
    said = watch.until(lambda json: "nvmlInit" in json["gpu_note"])
    assert said["gpus"] is None
    watch.until(lambda json: any("cannot be told" in gap["why"] for gap in json["missing"]))
    watch.shows("NVML silent for", "nvmlInit does not return")


def test_hang_in_a_call(watch: Watch, nvml: State) -> None:
    watch.until(knows_gpus)
    nvml.write("count 2", "gpu * mem 5000", "delay nvmlDeviceGetMemoryInfo* 1 60")
    said = watch.until(lambda json: "hangs" in json["gpu_note"])
    assert "nvmlDeviceGetMemoryInfo_v2 of GPU 1 hangs" in said["gpu_note"]
    assert said["gpus"] is None
    watch.shows("NVML silent for")
    watch.clock.shift_s = 40.0  # the next child leaves that GPU out
    said = watch.until(lambda json: json["gpus"])
    assert said["gpus"][0]["used_bytes"] == 5000 * MIB
    assert [said["gpus"][1][name] for name in USED] == [None] * 4
    assert "does not answer" in said["gpus"][1]["error"]


def test_a_call_in_state_d(watch: Watch, nvml: State) -> None:
    watch.until(knows_gpus)
    nvml.write("count 2", "dstate nvmlDeviceGetName* 0 20")
    said = watch.until(lambda json: "silent" in json["gpu_note"])
    assert said["gpus"] is None
    watch.shows("NVML silent for")


def test_crash(watch: Watch, nvml: State) -> None:
    watch.until(knows_gpus)
    nvml.write("count 2", "crash nvmlDeviceGetUtilizationRates 1 11")
    said = watch.until(lambda json: "died" in json["gpu_note"])
    assert (said["gpu_note"], said["gpus"]) == ("NVML child died: SIGSEGV", None)
    watch.shows("NVML child died: SIGSEGV")
    nvml.write("count 2", "gpu * mem 5000")
    watch.clock.shift_s = 5.0
    watch.until(knows_gpus)


def test_a_gpu_is_lost(watch: Watch, nvml: State) -> None:
    watch.until(knows_gpus)
    nvml.write("count 2", "gpu * mem 5000", "fail * 1 15")
    said = watch.until(lambda json: json["gpus"] and json["gpus"][1]["error"])
    assert "lost" in said["gpus"][1]["error"]
    assert [said["gpus"][1][name] for name in USED] == [None] * 4
    assert said["gpus"][0]["used_bytes"] == 5000 * MIB
    watch.shows("lost")


def test_the_driver_goes_while_it_is_watched_and_comes_back(watch: Watch, nvml: State) -> None:
    watch.until(knows_gpus)
    nvml.write("count 2", "fail * * 9")
    said = watch.until(lambda json: "not loaded" in json["gpu_note"])
    assert said["gpus"] is None
    watch.shows("the NVIDIA driver is not loaded")
    nvml.write("count 2", "gpu * mem 5000")
    watch.clock.shift_s = 5.0
    watch.until(knows_gpus)


@pytest.mark.parametrize(("code", "words"), [(4, "permission"), (18, "version"), (999, "unknown")])
def test_init_is_refused(watch: Watch, nvml: State, code: int, words: str) -> None:
    watch.until(knows_gpus)
    nvml.write(f"init_error {code}", "count 2", "crash nvmlDeviceGetCount* * 9")
    watch.until(lambda json: "died" in json["gpu_note"])
    watch.clock.shift_s = 5.0
    said = watch.until(lambda json: json["gpu_note"] and "died" not in json["gpu_note"])
    assert words in said["gpu_note"].lower()
    assert said["gpus"] is None
    watch.shows("log", said["gpu_note"][:30])


def test_a_value_is_not_available(watch: Watch, nvml: State) -> None:
    watch.until(knows_gpus)
    nvml.write("count 2", "gpu * mem 5000", "fail nvmlDeviceGetPowerUsage 1 3", "fail nvmlDeviceGetUtil* 1 4")
    said = watch.until(lambda json: json["gpus"] and json["gpus"][1]["power_w"] is None)
    assert said["gpus"][1]["util_percent"] is None
    assert said["gpus"][0]["power_w"] is not None
    why = {gap.signal: gap.why for gap in watch.snapshot.gpu.gpus[1].missing}
    assert why == {"power_mw": "not supported by this GPU", "util": "no permission"}


def test_there_is_no_gpu(watch: Watch, nvml: State) -> None:
    watch.until(knows_gpus)
    nvml.write("count 0")
    watch.until(lambda json: json["gpus"] == [])
    watch.shows("no GPU")


def test_no_memory_for_the_child(watch: Watch, nvml: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try gives back what it has taken."""
    watch.until(knows_gpus)
    tries = []

    def refuse(*args: object, **more: object) -> None:
        tries.append(len(os.listdir("/proc/self/fd")))
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(child_module.subprocess, "Popen", refuse)
    nvml.write("count 2", "crash nvmlDeviceGetCount* * 9")
    watch.until(lambda json: "died" in json["gpu_note"])
    watch.clock.shift_s = 5.0
    said = watch.until(lambda json: "cannot be started: Cannot allocate memory" in json["gpu_note"])
    assert said["gpus"] is None
    while len(tries) < 6:
        watch.clock.shift_s += 40.0
        had = len(tries)
        watch.until(lambda json, had=had: len(tries) > had)
    assert max(tries) - min(tries) < 4, f"descriptors are not given back: {tries}"
    watch.shows("NVML child cannot be started")
