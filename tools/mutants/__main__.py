"""Changes single places of the analysis and says whether a test fails.

``python -m tools.mutants --map FILE... [--seed N] [--number N] [--results FILE]``. The maps are of
``tools.mutants.reaching``. Results are a JSON line a mutant; those already there are not run again,
but for those that ``--only PATH:LINE#N`` names.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from tools.mutants import warm
from tools.mutants.mutations import File, Mutant, files, sample
from tools.mutants.reaching import Reaching
from tools.mutants.running import prepare, run

FOLDERS = [Path("sgmon/analyse/diagnosis"), Path("sgmon/analyse/log"), Path("sgmon/servers")]
#: First the fastest tests, one of a test file; then the others, as many as take that many seconds together.
FIRST, THEN_S = 3, 60.0
#: A mutant hangs that takes so many times as long as its tests did, plus the seconds.
TIMES, PLUS_S = 6, 120.0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--map", nargs="+", type=Path, required=True, help="which tests run which line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PATH:LINE#N", help="these mutants, whatever was drawn"
    )
    parser.add_argument("--tests", nargs="+", default=[], help="these tests instead of those of the map")
    return parser


def _named(names: list[str]) -> list[Mutant]:
    found = []
    for name in names:
        place, _, number = name.partition("#")
        path, _, line = place.partition(":")
        found += [one for one in File(Path(path)).of_line(int(line)) if not number or one.number == int(number)]
    return found


def _tests(mutant: Mutant, reaching: Reaching, anywhere: bool) -> list[str]:
    """The fastest FIRST, and of the others as many as take THEN_S together."""
    tests, budget = reaching.tests(Path(mutant.path), mutant.line, anywhere=anywhere), THEN_S
    chosen = tests[:FIRST]
    for test in tests[FIRST:]:
        budget -= reaching.seconds[test]
        if budget < 0:
            break
        chosen.append(test)
    return chosen


class _Results:
    """A JSON line a mutant. The last line of a mutant counts."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, dict[str, object]]:
        text = self._file.read_text() if self._file.exists() else ""
        return {one["name"]: one for one in map(json.loads, text.splitlines())}

    def add(self, mutant: Mutant, outcome: str, took_s: float, way: str = "warm") -> None:
        told = {"name": mutant.name, "kind": mutant.kind, "before": mutant.before, "after": mutant.after}
        with self._file.open("a") as file:
            print(json.dumps(told | {"outcome": outcome, "way": way, "took_s": round(took_s, 1)}), file=file)


def main() -> int:
    args = _parser().parse_args()
    prepare()
    reaching, results = Reaching(args.map), _Results(args.results)
    mutants = _named(args.only) if args.only else sample(files(FOLDERS), args.number, args.seed)
    said = args.results.with_suffix(".out")
    done = {} if args.only else results.read()
    jobs = [(mutant, args.tests or _tests(mutant, reaching, False)) for mutant in mutants if mutant.name not in done]
    warm.run(
        [
            (one, tests, _limit_s(tests, reaching))
            for one, tests in jobs
            if tests and not one.outside and not args.only
        ],
        said,
        results.add,
    )
    done = {} if args.only else results.read()
    for mutant in mutants:
        known = done.get(mutant.name)
        if known and (known["outcome"] != "survived" or known["way"] == "fresh"):
            continue
        began = time.monotonic()
        tests = args.tests or _tests(mutant, reaching, anywhere=True)
        outcome = run(mutant, tests, _limit_s(tests, reaching), said) if tests else "no test"
        results.add(mutant, outcome, time.monotonic() - began, "fresh")
    print(dict(Counter(one["outcome"] for one in results.read().values())))
    return 0


def _limit_s(tests: list[str], reaching: Reaching) -> float:
    return TIMES * sum(reaching.seconds.get(test, 0.0) for test in tests) + PLUS_S


if __name__ == "__main__":
    sys.exit(main())
