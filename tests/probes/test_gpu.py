"""The GPU probe on an NVML that works, refuses, hangs, blocks in the kernel, crashes and loses GPUs."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from sgmon.collect.gpu import probe as gpu_module
from sgmon.collect.gpu.probe import GpuProbe
from sgmon.model import GpuLink, Missing
from sgmon.units import duration

GIB = 1 << 30
MIB = 1 << 20


@pytest.fixture
def probe(nvml, watch, monkeypatch):
    monkeypatch.setattr(gpu_module, "ANSWER_S", 0.4)
    made = GpuProbe(watch())
    yield made
    made.close()


def test_values_of_a_working_gpu(nvml, probe):
    nvml.write("count 2", "gpu * mem 5000", "gpu 0 throttle 0x25", "gpu 0 ecc 3", "gpu 1 minor 7", "gpu 0 util 42")
    reading = probe.read()
    assert (reading.unavailable, reading.source, reading.driver) == ("", "NVML", "570.133.20")
    gpu = reading.gpus[0]
    assert (gpu.name, gpu.total_bytes, gpu.used_bytes) == ("NVIDIA H200", 143771 * MIB, 5000 * MIB)
    assert (gpu.util_percent, gpu.power_w, gpu.power_limit_w, gpu.temperature_c) == (42, 78.0, 700.0, 35)
    assert gpu.sm_clock_mhz == 1980
    assert gpu.throttle == ("power cap", "thermal (software)")  # bit 0, idle, is no throttling
    assert gpu.ecc_errors == 3
    assert [g.minor for g in reading.gpus] == [0, 7]
    assert gpu.missing == ()


def test_which_gpus_can_read_each_other_s_memory(nvml, probe):
    nvml.write("count 3", "fail nvmlDeviceGetP2PStatus 1 3")
    first, second = probe.read(), probe.read()
    assert first.links == (GpuLink(0, 1, "ok", True), GpuLink(0, 2, "ok", True)), "what is refused is not known"
    assert second.links == first.links


def test_not_available_is_none_and_has_a_reason(nvml, probe):
    nvml.write("count 1", "fail nvmlDeviceGetPowerUsage * 3", "fail nvmlDeviceGetUtilizationRates * 4")
    gpu = probe.read().gpus[0]
    assert gpu.power_w is None
    assert gpu.util_percent is None
    assert Missing("power_mw", "not supported by this GPU") in gpu.missing
    assert Missing("util", "no permission") in gpu.missing


def test_old_driver_without_memory_v2_says_what_it_counts(nvml, probe):
    nvml.write("count 1", "gpu * mem 5000", "fail nvmlDeviceGetMemoryInfo_v2 * 13")
    gpu = probe.read().gpus[0]
    assert gpu.used_bytes == 5600 * MIB
    assert [m.signal for m in gpu.missing] == ["reserved_bytes"]


def test_reserve_known_from_before_is_taken_off(nvml, probe):
    nvml.write("count 1", "gpu * mem 5000")
    probe.read()
    nvml.write("count 1", "gpu * mem 5000", "fail nvmlDeviceGetMemoryInfo_v2 * 20")
    assert probe.read().gpus[0].used_bytes == 5000 * MIB


def test_holders_with_names_and_unknown_memory(nvml, probe):
    script = "import setproctitle; setproctitle.setproctitle('sglang::scheduler_TP1'); print(flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        nvml.write("count 2", "gpu * mem 5000", f"proc 0 {holder.pid} 31000", "proc 1 4194303 NA")
        first, second = probe.read().gpus
    finally:
        holder.kill()
        holder.communicate()
    assert first.processes[0].name == "sglang::scheduler_TP1"  # recognisable, also when its server is gone
    assert first.processes[0].used_bytes == 31000 * MIB
    assert (second.processes[0].pid, second.processes[0].used_bytes, second.processes[0].name) == (4194303, None, "")


def test_mig_slices(nvml, probe):
    nvml.write("count 2", "mig 1 0 18000 400", "mig 1 3 18000 500")
    whole, cut = probe.read().gpus
    assert not whole.mig
    assert cut.mig
    assert [(part.slot, part.total_bytes, part.used_bytes) for part in cut.slices] == [
        (0, 18000 * MIB, 400 * MIB),
        (3, 18000 * MIB, 500 * MIB),
    ]
    assert cut.slices[0].uuid.startswith("MIG-")


@pytest.mark.parametrize("count", [0, 1, 16])
def test_counts(nvml, probe, count):
    nvml.write(f"count {count}")
    reading = probe.read()
    assert len(reading.gpus) == count
    assert reading.unavailable == ""


def test_gpus_join_and_leave(nvml, probe):
    for count in (2, 4, 1):
        nvml.write(f"count {count}")
        assert [gpu.index for gpu in probe.read().gpus] == list(range(count))


def test_lost_gpu_does_not_hide_the_others_and_comes_back(nvml, probe, clock):
    nvml.write("count 3")
    probe.read()
    nvml.write("count 3", "fail * 1 15")
    reading = probe.read()
    assert reading.unavailable == ""
    assert "lost" in reading.gpus[1].error
    assert (reading.gpus[1].used_bytes, reading.gpus[1].name) == (None, "NVIDIA H200")
    assert reading.gpus[0].used_bytes is not None
    nvml.write("count 3")
    clock.shift_s += 31  # a new nvmlInit is due
    assert [gpu.error for gpu in probe.read().gpus] == ["", "", ""]


@pytest.mark.parametrize(
    ("code", "words", "remedy"),
    [
        (9, "not loaded", "modprobe"),
        (18, "differ in version", "reboot"),
        (4, "no permission", "root"),
        (20, "memory", ""),
    ],
)
def test_refused_init_in_words(nvml, probe, code, words, remedy):
    nvml.write(f"init_error {code}")
    reading = probe.read()
    assert reading.state == "failed"
    assert words in reading.unavailable
    assert remedy in reading.remedy


def test_driver_reload_is_survived(nvml, probe, clock):
    nvml.write("count 2")
    probe.read()
    nvml.write("count 2", "fail * * 9")
    reading = probe.read()
    assert (reading.state, reading.unavailable) == ("failed", "the NVIDIA driver is not loaded")
    assert [(gpu.name, gpu.used_bytes) for gpu in reading.gpus] == [("NVIDIA H200", None)] * 2
    nvml.write("count 2")
    clock.shift_s += 1.1
    assert probe.read().unavailable == ""


@pytest.mark.parametrize("rule", ["delay nvmlDeviceGetMemoryInfo* 1 60", "dstate nvmlDeviceGetMemoryInfo* 1 60"])
def test_hanging_call_is_named_killed_and_left_out(nvml, probe, clock, rule):
    nvml.write("count 3")
    probe.read()
    child = probe._child.pid
    nvml.write("count 3", rule)
    start = clock.now()
    reading = probe.read()
    assert clock.now() - start < 1.5
    assert reading.state == "silent"
    assert reading.unavailable.startswith("NVML silent for ")
    assert "nvmlDeviceGetMemoryInfo_v2 of GPU 1 hangs" in reading.unavailable
    assert [gpu.used_bytes for gpu in reading.gpus] == [None] * 3
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    clock.shift_s += 0.5
    assert "silent" in probe.read().unavailable  # back-off: no new child yet
    assert probe._child is None
    clock.shift_s += 1.0
    reading = probe.read()
    assert reading.unavailable == ""
    assert [bool(gpu.error) for gpu in reading.gpus] == [False, True, False]
    nvml.write("count 3")
    clock.shift_s += 61
    assert [gpu.error for gpu in probe.read().gpus] == ["", "", ""]


def test_back_off_grows_and_silence_adds_up(nvml, probe, clock):
    nvml.write("count 2", "delay nvmlDeviceGetCount* * 60")
    waits = []
    for _ in range(4):
        probe.read()
        assert probe._child is None
        waits.append(probe._retry_t - clock.now())
        clock.shift_s += waits[-1]
    assert [round(wait) for wait in waits] == [1, 2, 4, 8]
    reading = probe.read()
    assert reading.failing_s > 15
    assert f"silent for {duration(reading.failing_s)}: the driver does not answer" in reading.unavailable


def test_hang_in_init_is_told_at_once_and_ended_late(nvml, probe, clock):
    nvml.write("count 2", "init_delay 60")
    reading = probe.read()
    assert reading.state == "silent"
    assert "nvmlInit" in reading.unavailable
    child = probe._child
    assert child is not None  # a slow init may still come good
    clock.shift_s += 31
    probe.read()
    assert probe._child is None


def test_crash_of_the_library(nvml, probe, clock):
    nvml.write("count 2", "crash nvmlDeviceGetUtilizationRates 1 11")
    reading = probe.read()
    assert (reading.state, reading.unavailable) == ("died", "NVML child died: SIGSEGV")
    nvml.write("count 2")
    clock.shift_s += 1.1
    assert probe.read().unavailable == ""


class StuckChild:
    """A child in a call that outlives SIGKILL for a while."""

    pid = 0
    answers = ()

    def __init__(self):
        self.answers = [{"hello": 1}, {"ok": {"driver": "1"}}]
        self.killed = self.ended = self.busy = False

    def send(self, request):
        pass

    def receive(self, limit_s):
        return self.answers.pop(0) if self.answers else None

    def where(self):
        return "nvmlDeviceGetCount"

    def runnable(self):
        return self.busy

    def kill(self):
        self.killed = True
        return self.ended

    def gone(self):
        return self.ended


def test_no_second_child_while_the_first_cannot_be_killed(watch, clock):
    made = []

    def start():
        made.append(StuckChild())
        return made[-1]

    probe = GpuProbe(watch(), start)
    assert probe.read().state == "silent"
    for _ in range(3):
        clock.shift_s += 31
        reading = probe.read()
        assert "cannot even be killed (nvmlDeviceGetCount)" in reading.unavailable
    assert len(made) == 1
    made[0].ended = True
    clock.shift_s += 31
    probe.read()
    assert len(made) == 2


def test_starved_child_gets_more_time(watch, clock):
    """On an overloaded machine the 2 s are over before the child had a CPU: that is not the driver's silence."""
    child = StuckChild()
    child.busy = True
    probe = GpuProbe(watch(), lambda: child)
    assert "waits for a CPU" in probe.read().unavailable
    assert not child.killed
    child.answers.append({"ok": {"gpus": []}})
    assert probe.read().unavailable == ""
    probe.read()
    clock.shift_s += 11
    assert "the driver does not answer" in probe.read().unavailable
    assert child.killed


def test_child_that_cannot_import_pynvml(watch, monkeypatch, tmp_path):
    (tmp_path / "pynvml.py").write_text("raise ImportError('No module named pynvml')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    reading = GpuProbe(watch()).read()
    assert (reading.state, reading.remedy) == ("died", "pip install nvidia-ml-py")


def test_all_gpus_hanging_is_silence(nvml, probe, clock):
    nvml.write("count 2", "delay nvmlDeviceGetName * 60")
    for _ in range(2):
        assert "nvmlDeviceGetName" in probe.read().unavailable
        clock.shift_s += 2.1
    reading = probe.read()
    assert (reading.state, reading.unavailable) == (
        "silent",
        "NVML silent: no GPU answers (nvmlDeviceGetName hangs)",
    )


def test_no_library_is_asked_rarely(watch, clock, monkeypatch, tmp_path):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    probe = GpuProbe(watch())
    reading = probe.read()
    if not reading.unavailable:
        pytest.skip("this machine has a driver")
    assert reading.unavailable == "no NVIDIA driver found (libnvidia-ml.so.1)"
    assert (reading.state, bool(reading.remedy)) == ("no-driver", True)
    clock.shift_s += 30
    assert probe.read().failing_s >= 30
    assert probe._child is None


def test_what_a_library_prints_is_no_answer(nvml, probe):
    nvml.write("count 1", "this line makes the double complain on stderr")
    assert len(probe.read().gpus) == 1


def test_child_dies_with_its_parent_even_in_a_hung_call(nvml):
    nvml.write("count 1", "delay nvmlDeviceGetName * 60")
    script = (
        "from sgmon.collect.probes.child import GpuChild\n"
        "from sgmon.collect.probes.base import Clock\n"
        "import signal\n"
        "child = GpuChild('sgmon.collect.gpu.nvidia_child', Clock().now)\n"
        "child.receive(20); child.send({'ask': 'init'}); child.receive(20); child.send({'ask': 'gpus'})\n"
        "child.receive(0.2)\n"
        "print(child.pid, child.where(), flush=True)\n"
        "signal.pause()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid, call, gpu = parent.stdout.readline().split()
    assert (call, gpu) == ("nvmlDeviceGetName", "0")
    handle = os.pidfd_open(int(pid))
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    ended, _, _ = select.select([handle], [], [], 10)
    os.close(handle)
    assert ended


def read_until(probe, done):
    """Reads until ``done(gpus)``: the background threads of the child have no other sign. On a loaded machine a child
    may be late, and there are no GPUs in a reading or two."""
    for _ in range(1000):
        gpus = probe.read().gpus
        if gpus and done(gpus):
            return gpus
        select.select([], [], [], 0.01)
    raise AssertionError("never came")


def test_pcie_rates_come_from_a_thread_and_rarely(nvml, probe, clock, tmp_path, monkeypatch):
    trace = tmp_path / "trace"
    monkeypatch.setenv("FAKE_NVML_TRACE", str(trace))
    nvml.write("count 2", "gpu 1 pcie_rx 2000", "gpu 1 pcie_tx 1000", "delay nvmlDeviceGetPcieThroughput * 0.02")
    gpus = read_until(probe, lambda gpus: gpus[1].pcie_rx_bytes_s is not None)
    assert (gpus[1].pcie_rx_bytes_s, gpus[1].pcie_tx_bytes_s) == (2000 * 1024, 1000 * 1024)
    for _ in range(20):
        probe.read()
    assert trace.read_text().count("nvmlDeviceGetPcieThroughput") == 4
    clock.shift_s += 26  # the thread made no new round: it hangs
    assert probe.read().gpus[1].pcie_rx_bytes_s is None


def test_hanging_pcie_call_hides_nothing(nvml, probe):
    nvml.write("count 1", "delay nvmlDeviceGetPcieThroughput * 60")
    for _ in range(3):
        gpu = probe.read().gpus[0]
    assert (gpu.error, gpu.pcie_rx_bytes_s) == ("", None)
    assert gpu.used_bytes is not None


def test_xids_are_kept_over_children(nvml, probe, clock):
    nvml.write("count 3", "xid 2 79", "xid 2 45")
    gpus = read_until(probe, lambda gpus: len(gpus[2].xids) == 2)
    assert [gpu.xids for gpu in gpus] == [(), (), (79, 45)]
    nvml.write("count 3", "crash nvmlDeviceGetName 0 11")
    assert probe.read().state == "died"
    nvml.write("count 3")
    clock.shift_s += 1.1
    assert probe.read().gpus[2].xids == (79, 45)


def test_switched_off_says_so_once(watch):
    probe = GpuProbe(watch(gpu=False))
    assert probe.read().state == "off"
    assert probe.read() is None
