"""Reading the log, part by part: the fold, its state, one line described. CPU time alone, best of several rounds.

    python -m benchmarks.fold
    python -m benchmarks.fold --against /path/to/another/checkout     in turns in the same run

A budget of 0.9 CPU s per 10 s at 10,000 lines/s for the whole dashboard leaves the fold what the log panel does not
need; the column "s/10 s" is what the fold alone would take of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.log import steady

ROOT = Path(__file__).parents[1]
LINES = 60_000
#: what the log probe reads at once: a fifth of a second at 10,000 lines/s
PIECE = 2_000
START = (
    "[2026-11-29 16:04:30] server_args=ServerArgs(model_path='/models/72b', api_key='abcdefgh', tp_size=8)\n"
    "[2026-11-29 16:04:40 TP0] Load weight begin. avail mem=93.05 GB\n"
    "[2026-11-29 16:04:58 TP0] Load weight end. elapsed=2.0 s, type=X, avail mem=76.05 GB, mem usage=17.00 GB.\n"
)
READY = "[2026-11-29 16:05:00] The server is fired up and ready to roll!\n"
DEBUG = (
    "[2026-11-29 15:34:{s:02} TP{r}] Attempting to acquire lock 1403733172{n:05} on /root/.cache/sglang/inductor/locks/c73.lock\n",
    "[2026-11-29 15:34:{s:02} TP{r}] Lock 1403733172{n:05} not acquired on /root/.cache/sglang/inductor/locks/c73.lock, waiting 0.05 seconds ...\n",
    "[2026-11-29 15:54:{s:02}] Break graph due to function: unified_attention_with_output\n",
    "[2026-11-29 15:34:{s:02}] Starting new HTTP connection (1): 127.0.0.1:31000\n",
    '[2026-11-29 15:34:{s:02}] http://127.0.0.1:31000 "GET /model_info HTTP/1.1" 200 1312\n',
    "[2026-11-29 15:34:{s:02}] Using regular tokenizer for 1 inputs\n",
)
NCCL = (
    "node1:8012:8{n:05} [{r}] NCCL INFO Channel 0{r}/0 : {r}[{r}] -> 1[1] via P2P/IPC/read\n",
    "node1:8012:8{n:05} [{r}] NCCL INFO comm 0x55d0c8{n:05} rank {r} nranks 8 cudaDev {r} nvmlDev {r} busId 1b000 commId 0x5 - Init START\n",
    "node1:8012:8{n:05} [{r}] NCCL INFO Connected all rings\n",
)
ONE = {
    "decode": "[2026-11-29 16:05:07 TP3] Decode batch, #running-req: 7, #token: 20100, token usage: 0.41, cuda graph: True, gen throughput (token/s): 20100.24, #queue-req: 0",
    "access": '[2026-11-29 16:05:07] INFO:     127.0.0.1:20100 - "POST /generate HTTP/1.1" 200 OK',
    "milestone": "[2026-11-29 16:04:58 TP0] Load weight end. elapsed=2.0 s, type=X, avail mem=76.05 GB, mem usage=17.00 GB.",
    "tokenizer": "[2026-11-29 15:34:18] Tokenizer for /models/8b loaded as generic TokenizersBackend, --trust-remote-code is off, special token ids: 3",
    "debug": DEBUG[1].format(s=7, r=1, n=17).rstrip(),
    "server_args": "[2026-11-29 16:04:30] server_args=ServerArgs("
    + ", ".join(f"some_{n}_tokens={n}, api_key_{n}=None, path_{n}='/models/72b/x'" for n in range(120))
    + ", api_key='abcdefgh', hf_token='hf_abcdefghijklmnopqrst')",
}


def many(patterns: tuple[str, ...], count: int) -> str:
    return "".join(
        patterns[n % len(patterns)].format(s=n // 900 % 60, r=n % 8, n=10_000 + n % 9973) for n in range(count)
    )


def texts() -> dict[str, str]:
    return {
        "batches, starting": START + steady(LINES),
        "batches, serving": START + READY + steady(LINES),
        "debug, starting": START + many(DEBUG, LINES),
        "debug, serving": START + READY + many(DEBUG, LINES),
        "NCCL info": START + many(NCCL, LINES),
    }


def pieces(text: str) -> Iterator[str]:
    """As the probe reads a growing file: not at line ends."""
    size = len(text) * PIECE // LINES
    return (text[at : at + size] for at in range(0, len(text), size))


def best(work: Callable[[], object], rounds: int = 5) -> float:
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def measure() -> dict[str, float]:
    """Microseconds a line, a state and a description."""
    from sgmon.analyse.log import lines
    from sgmon.analyse.log.fold import LogFold
    from sgmon.model import LogReading

    try:
        from sgmon.servers.sglang.log import RULES
    except ImportError:  # a checkout from before there were families
        describe = lines.describe
    else:
        describe = partial(lines.describe, log=RULES)
    found: dict[str, float] = {}
    for name, text in texts().items():
        readings = [LogReading("l", text=piece) for piece in pieces(text)]

        def work(readings: list[LogReading] = readings) -> None:
            fold = LogFold()
            for t, reading in enumerate(readings):
                fold.feed(reading, float(t))
                fold.state()

        found[name] = best(work, 3) / text.count("\n") * 1e6
    for name, marks in (("state, 40 marks", 5), ("state, 4,000 marks", 500)):
        fold = LogFold()
        text = START + "".join(
            f"[2026-11-29 16:05:{n % 60:02} TP{r}] Capture cuda graph begin. avail mem={n}.0 GB\n"
            for n in range(marks)
            for r in range(8)
        )
        fold.feed(LogReading("l", text=text), 1.0)
        found[name] = best(lambda fold=fold: [fold.state() for _ in range(20)]) / 20 * 1e6
        fold.feed(LogReading("l", text="[2026-11-29 16:05:07 TP3] Decode batch, #running"), 1.0)
        found[f"{name}, tail"] = best(lambda fold=fold: [fold.state() for _ in range(20)]) / 20 * 1e6
    for name, line in ONE.items():
        count = 20 if len(line) > 1000 else 500
        found[f"describe {name}"] = (
            best(lambda line=line, count=count: [describe(n, line) for n in range(count)]) / count * 1e6
        )
    return found


def measured_in(root: Path) -> dict[str, float]:
    """In a process of its own, with the sgmon of ``root``."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import json, benchmarks.fold as f; "
        f"sys.path.insert(0, {str(root)!r}); print(json.dumps(f.measure()))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=root)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    here: dict[str, float] = {}
    there: dict[str, float] = {}
    for _ in range(options.rounds):
        for root, kept in ((ROOT, here), (options.against, there)):
            for name, us in (measured_in(root) if root is not None else {}).items():
                kept[name] = min(us, kept.get(name, us))
    print(f"load {os.getloadavg()[0]:.1f}\n{'':28}{'us':>10}{'lines/s':>12}{'s/10 s':>8}{'other us':>12}{'x':>8}")
    for name, us in here.items():
        line = name.partition(" ")[0] not in ("state,", "describe")
        rate = f"{1e6 / us:12,.0f}{us / 10:8.2f}" if line else " " * 20
        other = f"{there[name]:12.2f}{there[name] / us:8.1f}" if name in there else ""
        print(f"{name:28}{us:10.2f}{rate}{other}")


if __name__ == "__main__":
    main()
