"""Every promise on speed beside its peer, in one table of ratios: python -m benchmarks [ROW ...]

    python -m benchmarks                       all rows; renews docs/benchmarks.md
    python -m benchmarks start follow-10000    groups, rows, or the beginning of their names
    python -m benchmarks --quick               fewer rounds, smaller inputs; nothing is written
    python -m benchmarks --list                names and budgets

A row is the median over the rounds of ours divided by the peer's; the programs of a round take turns or run at the
same time, so that other work of the machine hits all. Budgets: benchmarks/budgets.toml. Exit code 1: a row missed.
"""

from __future__ import annotations

import argparse
import compileall
import sys
from pathlib import Path

from benchmarks import page
from benchmarks.registry import Options, budgets, chosen
from benchmarks.rounds import Result, run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", metavar="ROW", nargs="*")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller inputs; write nothing")
    parser.add_argument("--list", action="store_true", help="names of the rows and their budgets")
    parser.add_argument("--no-write", action="store_true", help="leave docs/benchmarks.md as it is")
    args = parser.parse_args()
    try:
        wanted = list(chosen(args.rows))
    except ValueError as err:
        parser.error(str(err))
    limits = budgets()
    if args.list:
        print("\n".join(f"{row.name:50} {limits.get(row.name, '-')}" for _, rows in wanted for row in rows))
        return 0
    _compile()
    results: list[Result] = []
    for group, rows in wanted:
        print(f"{group.name}: {group.title}", file=sys.stderr, flush=True)
        fresh = run(group, rows, Options(quick=args.quick))
        print("\n".join(page.as_lines(fresh)), flush=True)
        results += fresh
        if not (args.quick or args.no_write):
            page.write(page.keep(fresh))
    missed = [one.row.name for one in results if page.word(one.ratio, limits.get(one.row.name)) == "MISS"]
    without = [one.row.name for one in results if one.ratio is None]
    print(f"\n{len(results) - len(missed) - len(without)} pass, {len(missed)} miss, {len(without)} not measured")
    return 1 if missed else 0


def _compile() -> None:
    """Make the byte code that pip makes at an installation, as the peers have it. Where PYTHONDONTWRITEBYTECODE is set,
    each start of the tree would compile it again, and 2 MiB of the compiler's memory stay in the heap."""
    for package in ("sgmon", "widgets", "tui_app"):
        compileall.compile_dir(Path(__file__).parents[1] / package, quiet=2)


if __name__ == "__main__":
    sys.exit(main())
