"""The log panel beside lnav, toolong, tail, less and grep: open, index, follow, search. One run, ratios included.

    python -m benchmarks.log                       200,000 lines, what is installed
    python -m benchmarks.log --lines 8000000       1.2 GB
    python -m benchmarks.log --tl /path/to/venv/bin/tl

Programs run in a 160x50 pty and are measured until the last line of the log stands on the screen. CPU is user and
system time of the program with all its threads. Numbers of a shared machine: read the ratios.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from benchmarks.terminal import ANSWERS

ROOT = Path(__file__).parents[1]
TICK = os.sysconf("SC_CLK_TCK")
STEADY = (
    "[2026-11-29 16:05:{s:02}{rank}] Decode batch, #running-req: {n}, #token: {m}, token usage: 0.41, cuda graph: True, "
    "gen throughput (token/s): {m}.24, #queue-req: 0\n",
    "[2026-11-29 16:05:{s:02}{rank}] Prefill batch, #new-seq: 1, #new-token: {n}, #cached-token: {m}, token usage: 0.40, "
    "#running-req: 12, #queue-req: 0, cuda graph: False\n",
    '[2026-11-29 16:05:{s:02}] INFO:     127.0.0.1:{m} - "POST /generate HTTP/1.1" 200 OK\n',
)


def steady(count: int, first: int = 0) -> str:
    """Lines as a serving SGLang writes them."""
    return "".join(
        STEADY[n % 3].format(s=n // 900 % 60, rank=f" TP{n % 8}", n=n % 97, m=20_000 + n % 9973)
        for n in range(first, first + count)
    )


def generate(path: Path, lines: int, mark: str) -> None:
    """A log of so many lines; the last one holds ``mark``."""
    part = steady(9973 * 3).encode()
    per_part = part.count(b"\n")
    with path.open("wb") as out:
        left = lines - 1
        while left >= per_part:
            out.write(part)
            left -= per_part
        out.write(steady(left).encode())
        out.write(f"[2026-11-29 16:06:00 TP0] the end {mark}\n".encode())


class Program:
    """A program in a pty."""

    def __init__(self, argv: list[str]) -> None:
        self.argv, self.began, self.written = argv, time.monotonic(), 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self._seen = b""

    def read(self, seconds: float) -> bytes:
        if not select.select([self.fd], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.fd, 1 << 20)
        except OSError:
            return b""
        for question, answer in ANSWERS.items():
            if question in data:
                os.write(self.fd, answer)
        self.written += len(data)
        return data

    def wait(self, mark: str, seconds: float) -> float | None:
        """Seconds since the start until ``mark`` was written."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._seen = self._seen[-64:] + self.read(0.05)
            if mark.encode() in self._seen:
                return time.monotonic() - self.began
        return None

    def drain(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.read(min(left, 0.1))

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def peak_mib(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
        return 0.0

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def settle_s(program: Program, limit_s: float = 60.0) -> float:
    """CPU seconds when the program has come to rest (less than 5 % of a core over half a second)."""
    deadline = time.monotonic() + limit_s
    before = program.cpu_s()
    while time.monotonic() < deadline:
        program.drain(0.5)
        now = program.cpu_s()
        if now - before <= 0.03:
            return now
        before = now
    return before


def viewers(tl: str) -> dict[str, list[str]]:
    """What can be compared here."""
    found = {
        "hello textual": [sys.executable, __file__, "--hello"],
        "sgmon panel": [sys.executable, __file__, "--viewer"],
        "panel + fold": [sys.executable, __file__, "--viewer", "--fold"],
    }
    for name, words in (
        ("lnav", ["lnav", "-N"]),
        ("tl", [tl or "tl"]),
        ("less +G", ["less", "+G"]),
        ("tail", ["tail", "-n", "48", "-f"]),
    ):
        path = shutil.which(words[0])
        if path:
            found[name] = [path, *words[1:]]
    return found


def compare_open(path: Path, mark: str, tl: str, runs: int) -> None:
    print("\nopen: until the last line is on the screen, and until the program has come to rest")
    print(f"{'program':15}{'s':>8}{'x lnav':>8}{'CPU s':>8}{'CPU s at rest':>15}{'x lnav':>8}{'peak MiB':>10}")
    rows = []
    for name, argv in viewers(tl).items():
        taken = []
        for _ in range(runs):
            program = Program([*argv, str(path)])
            s = program.wait("hello" if "--hello" in argv else mark, 120)
            cpu = program.cpu_s()
            taken.append((s or float("inf"), cpu, settle_s(program), program.peak_mib()))
            program.end()
        rows.append((name, *sorted(taken)[len(taken) // 2]))
    lnav = next((row for row in rows if row[0] == "lnav"), None)
    for name, s, cpu, rest, peak in rows:
        ratios = [
            f"{value / base:8.2f}" if lnav and base else " " * 8
            for value, base in ((s, lnav and lnav[1]), (rest, lnav and lnav[3]))
        ]
        print(f"{name:15}{s:8.3f}{ratios[0]}{cpu:8.2f}{rest:15.2f}{ratios[1]}{peak:10.0f}")


def compare_follow(path: Path, mark: str, tl: str, rates: list[int], seconds: float, only: str) -> None:
    print(f"\nfollow: {seconds:.0f} s of growth; lag: from the last line written to its being on the screen")
    print(
        f"{'program':15}{'lines/s':>9}{'CPU s':>8}{'x tail':>8}{'us/line':>9}{'CPU/10 s':>10}{'pty KB/s':>10}{'lag s':>8}"
    )
    for rate in rates:
        base = 0.0
        silent = ("less +G", "hello textual")
        programs = {n: a for n, a in viewers(tl).items() if n not in silent and (only in n or n == "tail")}
        for name, argv in sorted(programs.items(), key=lambda item: item[0] != "tail"):
            shutil.copyfile(path, path.with_suffix(".growing"))
            program = Program([*argv, str(path.with_suffix(".growing"))])
            program.wait(mark, 60)
            settle_s(program, 20)
            cpu, written, began, done = program.cpu_s(), program.written, time.monotonic(), 0
            with path.with_suffix(".growing").open("a") as out:
                while (t := time.monotonic() - began) < seconds:
                    due = int(rate * t)
                    out.write(steady(due - done, done))
                    out.flush()
                    done = due
                    program.drain(0.05)
                out.write(f"[2026-11-29 16:07:00 TP0] last {mark}-{rate}\n")
            ended = time.monotonic()
            seen = program.wait(f"{mark}-{rate}", 20)
            lag = program.began + seen - ended if seen is not None else float("inf")
            cpu = program.cpu_s() - cpu
            base = base or cpu
            kb_s = (program.written - written) / seconds / 1000
            ratio = f"{cpu / base:8.1f}" if base else " " * 8
            print(
                f"{name:15}{rate:9}{cpu:8.2f}{ratio}{cpu / max(1, done) * 1e6:9.1f}{cpu / seconds * 10:10.2f}{kb_s:10.0f}{lag:8.2f}"
            )
            program.end()
    path.with_suffix(".growing").unlink()


def measure_inside(path: Path, mark: str) -> None:
    """The parts alone, without Python's and Textual's start."""
    from sgmon.analyse.log.index import LogIndex
    from sgmon.model import LogReading
    from widgets.log_filter import parse
    from widgets.log_window import Window

    status = path.stat()
    index = LogIndex()
    cpu, began = time.process_time(), time.monotonic()
    index.follow(LogReading(str(path), f"{status.st_dev}:{status.st_ino}", size=status.st_size))
    rows = Window(index).before(None, 48)
    assert mark in rows[-1].row.message
    tail_s = time.monotonic() - began
    while index.indexed < index.size:
        time.sleep(0.01)
    print(f"\ninside: 48 rows of the end after {tail_s * 1000:.0f} ms (rules loaded on the way)")
    rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"inside: {index.total:,} lines indexed in {time.monotonic() - began:.2f} s, "
        f"{time.process_time() - cpu:.2f} CPU s; peak {rss_mib:.0f} MiB for the whole process"
    )
    began = time.monotonic()
    offset = index.offset_of(index.total // 2)
    print(
        f"inside: line {index.total // 2:,} found in {(time.monotonic() - began) * 1000:.1f} ms (offset {offset:,})"
    )
    for pattern in (mark, "running-req: 96,", r"new-token: 9[5-6]\b"):
        wanted = parse(pattern)
        ready: list[float] = []
        cpu, began = time.process_time(), time.monotonic()
        survey = index.survey(wanted.hits, wanted.hint())
        survey.start(lambda survey=survey, ready=ready: ready.append(1) if survey.done_share >= 1 else None)
        while not ready:
            time.sleep(0.01)
        ours = time.monotonic() - began
        words = ["grep", "-cE", pattern, str(path)]
        began = time.monotonic()
        hits = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
        grep_s = time.monotonic() - began
        print(
            f"filter {pattern!r}: whole log seen in {ours:.2f} s, {time.process_time() - cpu:.2f} CPU s; grep -cE {grep_s:.2f} s ({hits} lines)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--viewer", action="store_true")
    parser.add_argument("--hello", action="store_true")
    parser.add_argument("--fold", action="store_true")
    parser.add_argument("--only", default="", help="programs whose name holds this")
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rates", type=int, nargs="*", default=[1000, 10_000, 20_000])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--tl", default="", help="path of toolong's tl")
    options = parser.parse_args()
    if options.viewer or options.hello:
        from benchmarks.log_viewer import run_viewer

        run_viewer(options.file, options.hello, options.fold)
        return
    with tempfile.TemporaryDirectory(prefix="sgmon-bench-") as folder:
        path, mark = Path(folder) / "server.log", "Qx7Zk"
        generate(path, options.lines, mark)
        print(
            f"{options.lines:,} lines, {path.stat().st_size / 1e6:,.0f} MB, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
        )
        measure_inside(path, mark)
        if not options.only:
            compare_open(path, mark, options.tl, options.runs)
        small = Path(folder) / "small.log"
        generate(small, 2000, mark)
        compare_follow(small, mark, options.tl, options.rates, options.seconds, options.only)


if __name__ == "__main__":
    main()
