"""The table on the terminal, and the part of docs/benchmarks.md that is made from the results.

The last result of every row is kept in benchmarks/results.json, so that a run of single rows renews those rows alone.
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.registry import Group, budgets, groups
from benchmarks.rounds import Result

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "benchmarks.md"
#: what is between them is made, everything else on the page is written by hand
BEGIN, END = "<!-- made by python -m benchmarks: begin -->", "<!-- made by python -m benchmarks: end -->"

Kept = dict[str, dict[str, Any]]


def word(ratio: float | None, most: float | None) -> str:
    """How a row stands with its budget."""
    if ratio is None:
        return "not measured"
    if most is None:
        return "no budget"
    return "pass" if ratio <= most else "MISS"


def number(value: float | None) -> str:
    """Three digits of a value."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def as_lines(results: list[Result]) -> list[str]:
    """The table for the terminal."""
    limits = budgets()
    lines = [f"{'row':50} {'ratio':>7} {'most':>6}  {'':12} {'ours':>9} {'peer':>9}  {'rounds':>13} {'load':>5}"]
    for one in results:
        most = limits.get(one.row.name)
        spread = f"{number(one.low)}-{number(one.high)}" if one.ratio is not None else ""
        lines.append(
            f"{one.row.name:50} {number(one.ratio):>7} {number(most):>6}  {word(one.ratio, most):12} "
            f"{number(one.ours):>9} {number(one.peer):>9}  {spread:>13} {one.load:5.1f}"
            + (f"  {one.why}" if one.why else "")
        )
    return lines


def machine() -> dict[str, str]:
    """What the numbers were taken on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "cpu": f"{len(os.sched_getaffinity(0))} CPUs, {model}",
        "system": f"Linux {platform.release().partition('-')[0]}, Python {platform.python_version()}",
        "peers": ", ".join(f"{name} {version}" for name, version in sorted(peers.versions().items())),
    }


def keep(results: list[Result], path: Path = RESULTS) -> Kept:
    """Put the measured rows into the file of last results; all that are in it now."""
    kept: Kept = json.loads(path.read_text()) if path.exists() else {}
    here, day = machine(), time.strftime("%Y-%m-%d")
    for one in results:
        if one.ratio is None and one.row.name in kept:
            continue
        kept[one.row.name] = {
            "ratio": one.ratio,
            "ours": one.ours,
            "peer": one.peer,
            "low": one.low,
            "high": one.high,
            "rounds": one.rounds,
            "load": round(one.load, 1),
            "why": one.why,
            "date": day,
            "machine": here,
        }
    rounded = {name: {k: _round(v) for k, v in kept[name].items()} for name in sorted(kept)}
    path.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")
    return rounded


def _round(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def write(kept: Kept, page: Path = PAGE) -> None:
    """Renew the made part of the page; what else is on it stays."""
    text = page.read_text() if page.exists() else f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    if BEGIN not in text:
        text = text.rstrip() + f"\n\n{BEGIN}\n{END}\n"
    head, _, rest = text.partition(BEGIN)
    page.write_text(f"{head}{BEGIN}\n\n" + "\n".join(_made(kept)) + f"\n\n{END}{rest.partition(END)[2]}")


def _made(kept: Kept) -> list[str]:
    limits = budgets()
    lines = []
    for machine_words in sorted({json.dumps(one["machine"], sort_keys=True) for one in kept.values()}):
        here = json.loads(machine_words)
        lines.append(f"{here['cpu']}; {here['system']}. Peers: {here['peers']}.")
    lines += ["", "| what | ours / peer | of | ratio | at most | | rounds: lowest to highest | load | date |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for group in groups():
        lines += _of(group, kept, limits)
    return lines


def _of(group: Group, kept: Kept, limits: dict[str, float]) -> list[str]:
    lines = []
    for row in group.rows:
        one = kept.get(row.name)
        if one is None:
            continue
        most = limits.get(row.name)
        standing = word(one["ratio"], most)
        spread = "" if one["ratio"] is None else f"{one['rounds']}: {number(one['low'])} to {number(one['high'])}"
        lines.append(
            f"| {group.title} | {row.ours} / {row.peer} | {row.unit} | {number(one['ratio'])} | {number(most)} "
            f"| {f'**{standing}**' if standing == 'MISS' else standing}{': ' + one['why'] if one['why'] else ''} "
            f"| {spread} | {one['load']:g} | {one['date']} |"
        )
    return lines
