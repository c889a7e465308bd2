"""The fold by kind of text, SGLang's and vLLM's: ms of CPU a MB, best of several rounds, checkouts in turns.

    python -m benchmarks.fold_kinds
    python -m benchmarks.fold_kinds --against /path/to/another/checkout --against /path/to/a/third
    python -m benchmarks.fold_kinds --only vllm --rounds 5

Texts: real starts of tests/cases, and after one of them what a server writes by the million. "at once": the start and
the serving text in one piece, as a log is read that was there before.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.fold import DEBUG, NCCL, READY, ROOT, START, many
from benchmarks.log import steady

LINES = 12_000
#: what the log probe reads at once of a log that grows quickly
PIECE = 256 * 1024
VLLM_STATS = (
    "(APIServer pid=733) INFO 11-29 23:00:{s:02} [loggers.py:271] Engine 000: Avg prompt throughput: {n}.4 tokens/s, Avg "
    "generation throughput: 1203.5 tokens/s, Running: {r} reqs, Waiting: 0 reqs, GPU KV cache usage: 12.5%, "
    "Prefix cache hit rate: 0.0%\n",
    "(APIServer pid=733) INFO 11-29 23:00:{s:02} [chat_utils.py:560] Detected the chat template content format to be "
    "'string'. You can set `--chat-template-content-format` to override this.\n",
    '(APIServer pid=733) INFO:     127.0.0.1:{n} - "POST /v1/completions HTTP/1.1" 200 OK\n',
)
VLLM_ACCESS = (
    '(APIServer pid=733) INFO:     127.0.0.1:{n} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n',
    '(APIServer pid=733) INFO:     127.0.0.1:{n} - "GET /health HTTP/1.1" 200 OK\n',
    'INFO:     127.0.0.1:{n} - "GET /metrics HTTP/1.1" 200 OK\n',
)
VLLM_NCCL = tuple(f"(Worker_TP{{r}} pid=105{{r}}) {line}" for line in NCCL)
VLLM_DEBUG = (
    "(EngineCore pid=948) DEBUG 11-29 22:56:{s:02} [core.py:1090] EngineCore waiting for work, step {n}.\n",
    "(Worker_TP{r} pid=1054) DEBUG 11-29 22:56:{s:02} [shm_broadcast.py:{n}] read a message of the queue\n",
    "(Worker_TP{r} pid=1054) INFO 11-29 22:56:{s:02} [backends.py:350] Cache the graph of compile range {n}\n",
)
ACCESS = ('[2026-11-29 16:05:{s:02}] INFO:     127.0.0.1:{n} - "POST /generate HTTP/1.1" 200 OK\n',)


def real(pattern: str) -> str:
    """The real logs of tests/cases whose path fits, one after another."""
    paths = sorted((ROOT / "tests" / "cases").glob(pattern))
    return "".join(gzip.decompress(path.read_bytes()).decode("utf-8", "replace") for path in paths)


def texts() -> dict[str, tuple[str, str]]:
    """Name -> what is read before (not measured), what is read."""
    vllm = real("vllm/real/gpu-tp2-default.log.gz")
    vllm = vllm[: vllm.index("(EngineCore pid=948) INFO 11-29 22:57:07")]  # what it says when it is stopped
    sglang = START + READY
    stats = many(VLLM_STATS, LINES)
    return {
        "vllm starts": ("", real("vllm/real/*.log.gz") * 3),
        "vllm starting, debug": ("", vllm[: vllm.index("Application startup")] + many(VLLM_DEBUG, LINES)),
        "vllm serving": (vllm, stats),
        "vllm access": (vllm, many(VLLM_ACCESS, LINES)),
        "vllm NCCL": (vllm[: vllm.index("Graph capturing")], many(VLLM_NCCL, LINES)),
        "vllm at once": ("", vllm + stats * 2),
        "sglang starts": ("", real("real/gpu/*.log.gz")),
        "sglang starting, debug": ("", START + many(DEBUG, LINES)),
        "sglang serving": (sglang, steady(LINES)),
        "sglang access": (sglang, many(ACCESS, LINES)),
        "sglang NCCL": (START, many(NCCL, LINES)),
        "sglang at once": ("", sglang + steady(LINES * 2)),
    }


def measure(only: str) -> dict[str, float]:
    """Milliseconds of CPU a MB. The text before is read in pieces until nothing is kept of the beginning."""
    from sgmon.analyse.log.fold import EARLY, LogFold
    from sgmon.model import LogReading

    found: dict[str, float] = {}
    for name, (before, text) in texts().items():
        if only not in name:
            continue
        size = len(text) if "at once" in name or "starts" in name else PIECE
        pieces = [LogReading("l", text=text[at : at + size]) for at in range(0, len(text), size)]
        taken = []
        for _ in range(4):
            fold = LogFold(epoch=1_796_000_000.0)
            if before:
                fold.feed(LogReading("l", text=before + text[: EARLY + 1] + "\n"), 0.0)
                fold.feed(LogReading("l", text="\n"), 0.0)
            began = time.process_time()
            for t, piece in enumerate(pieces):
                fold.feed(piece, float(t))
            taken.append(time.process_time() - began)
        found[name] = min(taken) * 1e3 / (len(text) / 1e6)
    return found


def measure_rules() -> dict[str, float]:
    """What the rules cost a process once: milliseconds, and the number of patterns made."""
    made: list[str] = []
    compiler: Any = getattr(re, "_compiler" if sys.version_info >= (3, 11) else "sre_compile")
    compile_it = compiler.compile
    spent = [0.0]

    def counting(pattern: object, flags: int = 0) -> object:
        began = time.process_time()
        done = compile_it(pattern, flags)
        spent[0] += time.process_time() - began
        made.append(str(pattern))
        return done

    compiler.compile = counting
    began = time.process_time()
    from sgmon.analyse.log.fold import LogFold
    from sgmon.model import LogReading

    found = {"import: ms": (time.process_time() - began) * 1e3, "import: patterns": len(made)}
    found["import: ms of patterns"] = spent[0] * 1e3
    for family, text in (
        ("sglang", START + READY),
        ("vllm", real("vllm/real/gpu-tp2-default.log.gz")),
    ):
        before, count, patterns = time.process_time(), len(made), spent[0]
        fold = LogFold(epoch=1_796_000_000.0)
        fold.feed(LogReading("l", text=text), 0.0)
        fold.state()
        found[f"first {family} start: ms"] = (time.process_time() - before) * 1e3
        found[f"first {family} start: patterns"] = len(made) - count
        found[f"first {family} start: ms of patterns"] = (spent[0] - patterns) * 1e3
    return found


def measured_in(root: Path, call: str) -> dict[str, float]:
    """In a process of its own, with the sgmon of ``root``."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import json, benchmarks.fold_kinds as f; "
        f"sys.path.insert(0, {str(root)!r}); print(json.dumps(f.{call}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--against", type=Path, action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="texts with this in their name")
    options = parser.parse_args()
    roots: list[Path] = [ROOT, *options.against]
    kept: list[dict[str, float]] = [{} for _ in roots]
    for _ in range(options.rounds):
        for root, least in zip(roots, kept, strict=True):
            for call in (f"measure({options.only!r})", "measure_rules()"):
                for name, value in measured_in(root, call).items():
                    least[name] = min(value, least.get(name, value))
    print(f"{'ms of CPU a MB':36}{'here':>9}" + "".join(f"{root.name[-14:]:>15}{'x':>6}" for root in roots[1:]))
    for name, ours in kept[0].items():
        others = "".join(f"{other[name]:15.2f}{ours / other[name]:6.2f}" for other in kept[1:] if name in other)
        print(f"{name:36}{ours:9.2f}{others}")


if __name__ == "__main__":
    main()
