"""``python -m benchmarks.real_gpus --family sglang --site DIR --model DIR --gpus 8 --out DIR [scenario ...]``: see README.md."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import time
from pathlib import Path

from benchmarks.real_gpus.run import Place, Run
from benchmarks.real_gpus.scenarios import SGLANG, VLLM

LEAST_S = 35.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=("sglang", "vllm"), required=True)
    parser.add_argument("--site", type=Path, required=True, help="a virtual environment, or a folder of packages")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gpus", default="2", help="how many, or their indices: 0,1,2")
    parser.add_argument("--port", type=int, default=31000)
    parser.add_argument(
        "--budget", type=float, default=3600.0, help="seconds; what does not fit any more is left out"
    )
    parser.add_argument("--pack", type=Path, help="a tar.xz of everything, written anew after each scenario")
    parser.add_argument("--extra", default="", help="further arguments of the server, the last word: '--ep-size 8'")
    parser.add_argument("scenarios", nargs="*", help="default: all that need as many GPUs as there are")
    args = parser.parse_args()
    table = VLLM if args.family == "vllm" else SGLANG
    gpus = (
        tuple(int(one) for one in args.gpus.split(",") if one) if "," in args.gpus else tuple(range(int(args.gpus)))
    )
    began = time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(args.scenarios or table):
        left = args.budget - (time.monotonic() - began)
        limit = min(table[name].limit_s, left - 20)
        if limit < LEAST_S:
            print(f"{name}: left out, {left:.0f} s left", flush=True)
            continue
        place = Place(
            args.family,
            args.site,
            args.model,
            args.out,
            gpus,
            args.port + 20 * number,
            tuple(shlex.split(args.extra)),
        )
        try:
            said = Run(place, name, table[name], limit).go()
        except Exception as err:  # the next scenario is worth its try
            said = f"{name}: the driver failed: {err!r}"
        print(f"{said}; {args.budget - (time.monotonic() - began):.0f} s left", flush=True)
        if args.pack:
            part = args.pack.with_suffix(".part")
            words = f"tar c --exclude=state -C '{args.out}' . | xz -T8 -2 > '{part}' && mv '{part}' '{args.pack}'"
            subprocess.run(words, shell=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
