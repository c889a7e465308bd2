"""One start: the server, sgmon's commands beside it from second 0, the fault, the end. Everything that came of it lies in one
folder: server.log, rec.jsonl.gz, screen.cast, wait.json, check.json, stacks.txt, smi.csv, acts.json (what was done, by the wall
clock)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.real_gpus.scenarios import TESTS, Scenario
from benchmarks.real_gpus.screen import Screen
from benchmarks.real_gpus.slow import Slow

HERE = Path(__file__).parent
REPO = HERE.parent.parent
#: SGLang prints uvicorn's line before its warm-up
READY = {"sglang": re.compile("The server is fired up"), "vllm": re.compile("Application startup complete")}
SLEEPS = "sleeping: "
#: the title of the only rank
_ALONE = {"sglang": "scheduler", "vllm": "EngineCore"}
STACKS_AFTER_S = 6.0
#: how long the server may take to end when it is asked to
END_S = 5.0
#: no NVLink multicast: on a shared host it can put GPUs out of service; nothing is fetched
SETTINGS = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "VLLM_ALLREDUCE_USE_SYMM_MEM": "0",
}


class Place(NamedTuple):
    """Where and with what it runs. site: a virtual environment, or a folder of packages for PYTHONPATH. gpus: indices."""

    family: str
    site: Path
    model: Path
    out: Path
    gpus: tuple[int, ...]
    port: int
    extra: tuple[str, ...] = ()


def command(place: Place, scenario: Scenario) -> list[str]:
    """The server's command line."""
    words = {
        "tp": str(len(place.gpus)),
        "half": str(max(1, len(place.gpus) // 2)),
        "last": f"TP{len(place.gpus) - 1}",
    }
    args = [word.format(**words) for word in scenario.args]
    inside = place.site / "bin" / "python"
    python = str(inside) if inside.exists() else sys.executable
    ends = ["--port", str(place.port), "--host", "127.0.0.1"]
    if place.family == "vllm":
        length = [] if "--max-model-len" in args else ["--max-model-len", "8192"]
        return [
            python,
            str(place.site / "bin" / "vllm"),
            "serve",
            str(place.model),
            *length,
            *args,
            *ends,
            *place.extra,
        ]
    return [
        python,
        "-m",
        "sglang.launch_server",
        "--model-path",
        str(place.model),
        *ends,
        *TESTS,
        *args,
        *place.extra,
    ]


def environment(place: Place, scenario: Scenario) -> dict[str, str]:
    """The server's environment."""
    last = f"TP{len(place.gpus) - 1}" if len(place.gpus) > 1 else _ALONE[place.family]
    paths = [str(HERE / "sleeping")] if scenario.sleep else []
    if not (place.site / "bin" / "python").exists():
        paths.append(str(place.site))
    env = {**os.environ, **SETTINGS, "CUDA_VISIBLE_DEVICES": ",".join(map(str, place.gpus))}
    env |= {"PYTHONPATH": ":".join(paths), "SGMON_SLEEP": scenario.sleep.format(last=last)}
    return env


def last_rank(place: Place, scenario: Scenario) -> str:
    """What the last rank's title matches; with one GPU the title has no number."""
    if len(place.gpus) == 1:
        return f"::{_ALONE[place.family]}"
    # managers/scheduler.py: TP stands in the title only where it is more than 1
    if place.family == "sglang" and "--dp-size" in scenario.args:
        half = len(place.gpus) // 2
        return r"scheduler_DP1\b" if half == 1 else rf"scheduler_DP1_TP{half - 1}\b"
    worker = "scheduler" if place.family == "sglang" else "VLLM::Worker"
    return rf"{worker}_?TP{len(place.gpus) - 1}\b"


class Run:
    """One scenario. ``go`` does it and returns a line of words."""

    def __init__(self, place: Place, name: str, scenario: Scenario, limit_s: float) -> None:
        self.place, self.name, self.scenario, self.limit_s = place, name, scenario, limit_s
        self.dir = place.out / f"r-{name}"
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self.acts: list[dict[str, Any]] = []
        self.seen: dict[int, float] = {}
        self.beside: dict[str, subprocess.Popen[bytes]] = {}

    def act(self, do: str, **more: Any) -> None:
        self.acts.append({"wall": time.time(), "do": do, **more})

    def go(self) -> str:
        holder = self._hold()
        if self.scenario.cold:
            _drop_caches()
        if self.scenario.check:
            self._check()
        slow = Slow(self.scenario.slow_mb, self.place.model)
        try:
            return self._start(slow)
        finally:
            slow.end()
            if holder is not None:
                holder.kill()
                holder.wait()
            (self.dir / "acts.json").write_text(json.dumps(self.acts))

    def _hold(self) -> subprocess.Popen[bytes] | None:
        if self.scenario.hold is None:
            return None
        which, wanted = self.scenario.hold
        words = [sys.executable, str(HERE / "hold.py"), str(self.place.gpus[which]), wanted]
        holder = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert holder.stdout is not None
        self.act("hold", pid=holder.pid, said=holder.stdout.readline().decode().strip())
        return holder

    def _sgmon(self, *words: str, out: str) -> subprocess.Popen[bytes]:
        env, argv = self._environment(), [sys.executable, "-m", "tui_app.cli", *words]
        with open(self.dir / out, "wb") as file:
            errors = subprocess.STDOUT if out.endswith(".out") else subprocess.DEVNULL
            return subprocess.Popen(argv, stdout=file, stderr=errors, env=env, cwd=REPO)

    def _check(self) -> None:
        env = environment(self.place, self.scenario)
        env |= {"PYTHONPATH": f"{REPO}:{os.environ.get('PYTHONPATH', '')}:{self.place.site}"}
        words = [sys.executable, "-m", "tui_app.cli", "check", "--json", "--", *command(self.place, self.scenario)]
        began = time.monotonic()
        done = subprocess.run(words, env=env, cwd=REPO, capture_output=True, timeout=60)
        (self.dir / "check.json").write_bytes(done.stdout)
        self.act(
            "check", rc=done.returncode, took_s=round(time.monotonic() - began, 2), err=done.stderr.decode()[-300:]
        )

    def _start(self, slow: Slow) -> str:
        began = time.time()
        with open(self.dir / "server.log", "wb") as log:
            self.server = subprocess.Popen(
                command(self.place, self.scenario),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=environment(self.place, self.scenario),
            )
        pid = str(self.server.pid)
        self.act(
            "launch", pid=self.server.pid, argv=command(self.place, self.scenario), slow=slow.put(self.server.pid)
        )
        self.beside["record"] = self._sgmon(
            "record", "--force", "--pid", pid, str(self.dir / "rec.jsonl.gz"), out="record.out"
        )
        self.beside["wait"] = self._sgmon(
            "wait", "--json", "-q", "--pid", pid, "--timeout", f"{self.limit_s:.0f}", out="wait.json"
        )
        self._open_screen(pid)
        if shutil.which("nvidia-smi"):
            query = "--query-gpu=timestamp,index,memory.used,utilization.gpu,power.draw"
            with open(self.dir / "smi.csv", "wb") as file:
                words = ["nvidia-smi", query, "--format=csv,noheader,nounits", "-l", "2"]
                self.beside["smi"] = subprocess.Popen(words, stdout=file, stderr=subprocess.DEVNULL)
        ready_s = self._watch(began)
        self._end()
        return f"{self.name}: ready {ready_s}, exit {self.server.poll()}, {time.time() - began:.0f} s"

    def _open_screen(self, pid: str) -> None:
        words = [sys.executable, "-m", "tui_app.cli", "--pid", pid]
        self.screen = Screen(words, self._environment(), REPO, self.dir / "screen.cast")
        self.beside["screen"] = self.screen.process

    def _environment(self) -> dict[str, str]:
        """sgmon's."""
        env = {**os.environ, "PYTHONPATH": f"{REPO}:{os.environ.get('PYTHONPATH', '')}"}
        return env | {"XDG_STATE_HOME": str(self.place.out / "state")}

    def _watch(self, began: float) -> float | None:
        """Until the fault is over and the server is ready, or it has ended, or the time is up. Seconds to ready."""
        fault, scenario = self.scenario.fault, self.scenario
        ready_s = end = back = stacks = None
        done, slept, hit = fault is None, not scenario.sleep, []
        while time.time() - began < self.limit_s and (end is None or time.time() < end):
            self._note_children()
            text = (self.dir / "server.log").read_text("utf-8", "replace").replace("\r", "\n")
            now = time.time()
            if fault is not None and not done and re.search(fault.at, text):
                time.sleep(fault.delay_s)
                hit = self._pids(fault.who)
                self._signal(hit, fault.do)
                done, stacks = True, time.time() + STACKS_AFTER_S
                back = time.time() + fault.back_s if fault.back_s else None
                end = None if fault.back_s else time.time() + scenario.after_s
            if not slept and SLEEPS in text:
                slept, stacks = True, now + STACKS_AFTER_S
                self.act("sleep", line=next(line for line in text.splitlines() if SLEEPS in line)[:160])
            if back is not None and now > back:
                self._signal(hit, "CONT")
                back = None
            if stacks is not None and now > stacks:
                self._stacks()
                stacks = None
            if ready_s is None and READY[self.place.family].search(text):
                ready_s = round(now - began, 1)
                self.act("ready line")
            if self.server.poll() is not None and end is None:
                self.act("exit", rc=self.server.returncode)
                end = now + scenario.after_s
            if ready_s is not None and done and back is None and end is None:
                end = now + scenario.after_s
            time.sleep(0.1)
        return ready_s

    def _stacks(self) -> None:
        if self.server.poll() is None:
            words = ("stacks", "--samples", "2", "--pid", str(self.server.pid))
            self.beside["stacks"] = self._sgmon(*words, out="stacks.txt")

    def _note_children(self) -> None:
        try:
            root = psutil.Process(self.server.pid)
            for process in [root, *root.children(recursive=True)]:
                self.seen.setdefault(process.pid, process.create_time())
        except psutil.Error:
            pass

    def _alive(self) -> list[psutil.Process]:
        found = []
        for pid, created in self.seen.items():
            try:
                process = psutil.Process(pid)
                if process.create_time() == created and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def _pids(self, who: str) -> list[int]:
        if who == "launcher":
            return [self.server.pid]
        found = []
        for process in self._alive():
            try:
                if re.search(last_rank(self.place, self.scenario), " ".join(process.cmdline())):
                    found.append(process.pid)
            except psutil.Error:
                continue
        return found[:1]

    def _signal(self, pids: list[int], name: str) -> None:
        for pid in pids:
            self.act(name, pid=pid)
            os.kill(pid, getattr(signal, f"SIG{name}"))
        if not pids:
            self.act(f"{name}: nobody found")

    def _end(self) -> None:
        """Ask the server to end, then end what is left of it, then sgmon."""
        costs = {name: _cpu_s(one) for name, one in self.beside.items()}
        self.act("SIGTERM", rc=self.server.poll(), cpu_s=costs)
        if self.server.poll() is None:
            self.server.terminate()
            try:
                self.server.wait(END_S)
            except subprocess.TimeoutExpired:
                pass
        time.sleep(2.5)
        self.act("end", rc=self.server.poll())
        for process in self._alive():
            process.kill()
        if self.server.poll() is None:
            self.server.kill()
        for name, one in self.beside.items():
            one.send_signal(signal.SIGKILL if name == "smi" else signal.SIGINT)
        for one in self.beside.values():
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
        self.screen.join()
        self.server.wait(10)


def _cpu_s(process: subprocess.Popen[bytes]) -> float | None:
    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.Error:
        return None
    return round(times.user + times.system, 2)


def _drop_caches() -> None:
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError as err:
        print(f"the page cache stays: {err}", flush=True)
