"""Changes single places of the analysis and says whether a test fails.

``python -m tools.mutants --map FILE... [--seed N] [--number N] [--since REVISION] [--results FILE]``. The maps are of
``tools.mutants.reaching``. Results are a JSON line a mutant; those already there are not run again,
but for those that ``--only PATH:LINE#N`` names. Outcomes: ``killed`` (by the named test, which passes without the
change), ``hung``, ``refused`` (no test fails, mypy refuses it), ``survived``, ``no test`` (mypy accepts it).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from tools.mutants import warm
from tools.mutants.mutations import File, Mutant, changed_since, files, sample
from tools.mutants.reaching import FIRST, FOLDERS, Reaching
from tools.mutants.running import prepare, run
from tools.mutants.types import types

#: Of the tests that follow the first ones as many as take that many CPU seconds together; in a process that imports
#: the change.
THEN_S, FRESH_S = 20.0, 8.0
#: A mutant hangs that takes so many times as long as its tests did, plus the seconds.
TIMES, PLUS_S = 5, 60.0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--map", nargs="+", type=Path, required=True, help="which tests run which line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--since", metavar="REVISION", help="of lines that changed since this revision of git alone")
    parser.add_argument("--files", nargs="+", default=[], type=Path, metavar="PATH", help="of these files alone")
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


def _drawn(args: argparse.Namespace) -> list[Mutant]:
    among = changed_since(args.since) if args.since else None
    of = [File(path) for path in args.files] or files(FOLDERS)
    return sample(of, args.number, args.seed, among)


def _tests(mutant: Mutant, reaching: Reaching, anywhere: bool) -> list[str]:
    """The first FIRST, and of the others in their order those that the seconds allow."""
    tests = reaching.tests(Path(mutant.path), mutant.line, anywhere=anywhere)
    budget = FRESH_S if anywhere and not mutant.outside else THEN_S
    chosen = tests[:FIRST]
    for test in tests[FIRST:]:
        if reaching.work_s[test] <= budget:
            budget -= reaching.work_s[test]
            chosen.append(test)
    return chosen


class _Results:
    """A JSON line a mutant. The last line of a mutant counts."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, dict[str, object]]:
        text = self._file.read_text() if self._file.exists() else ""
        return {one["name"]: one for one in map(json.loads, text.splitlines())}

    def add(self, mutant: Mutant, outcome: str, took_s: float, by: str = "", way: str = "warm") -> None:
        told = {"name": mutant.name, "kind": mutant.kind, "before": mutant.before, "after": mutant.after}
        told |= {"outcome": outcome, "way": way, "by": by}
        with self._file.open("a") as file:
            print(json.dumps(told | {"took_s": round(took_s, 1)}), file=file)


def main() -> int:
    args = _parser().parse_args()
    prepare()
    reaching, results = Reaching(args.map), _Results(args.results)
    mutants = _named(args.only) if args.only else _drawn(args)
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
        outcome, by = run(mutant, tests, _limit_s(tests, reaching), said) if tests else ("no test", "")
        results.add(mutant, outcome, time.monotonic() - began, by, "fresh")
    _check_killers(results, mutants, reaching, said)
    _check_types(results, mutants, args.results.with_suffix(".copy"))
    print(dict(Counter(one["outcome"] for one in results.read().values())))
    return 0


def _check_killers(results: _Results, mutants: list[Mutant], reaching: Reaching, said: Path) -> None:
    """A test that killed must pass without a change; what another killed counts as survived."""
    done = results.read()
    killers = sorted({str(one["by"]) for one in done.values() if one["outcome"] == "killed" and one["by"]})
    wrong: set[str] = set()
    while killers:
        left = [test for test in killers if test not in wrong]
        outcome, by = run(None, left, _limit_s(left, reaching), said)
        if outcome == "survived":
            break
        assert by in left, f"the tests {outcome} without a change, see {said}"
        wrong.add(by)
    for mutant in mutants:
        known = done.get(mutant.name, {})
        if known.get("outcome") == "killed" and known.get("by") in wrong:
            print(f"{known['by']} fails without a change, too")
            results.add(mutant, "survived", 0.0, way="fresh")


def _check_types(results: _Results, mutants: list[Mutant], copy: Path) -> None:
    """``make test`` runs mypy as well."""
    done = results.read()
    alive = [one for one in mutants if done.get(one.name, {}).get("outcome") in ("survived", "no test")]
    checked = types(copy) if alive else None
    for mutant in alive:
        began = time.monotonic()
        if checked is not None and checked.refuses(mutant):
            results.add(mutant, "refused", time.monotonic() - began, "mypy", "fresh")


def _limit_s(tests: list[str], reaching: Reaching) -> float:
    return TIMES * sum(reaching.took_s.get(test, 0.0) for test in tests) + PLUS_S


if __name__ == "__main__":
    sys.exit(main())
