"""``python -m benchmarks.real_gpus.summary FOLDER ...``: each run beside what was done to it: sgmon's words with their
seconds since the server's process began, words that were false, the memory plan, the panel against nvidia-smi, sgmon's CPU time."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sgmon.analyse.gpu.taken import taken
from sgmon.analyse.store import Store
from sgmon.model import Event, Snapshot
from sgmon.recording.codec import read

GIB, MIB = 1024**3, 1024**2
ALARMS = ("suspect", "stalled", "stopped", "crashed", "unknown", "unhealthy", "will-fail")
TICK_S = 0.5
#: how far a sample of nvidia-smi and a reading may be apart
PAIR_S = 0.6


def main(folders: list[str]) -> int:
    for folder in folders:
        for run in sorted(Path(folder).glob("**/acts.json")):
            print(*_lines(run.parent), "", sep="\n")
    return 0


def _lines(run: Path) -> Iterator[str]:
    acts = json.loads((run / "acts.json").read_text())
    header, events = read(run / "rec.jsonl.gz")
    launch = next(act["wall"] for act in acts if act["do"] == "launch")
    rows: list[tuple[float, str]] = [(act["wall"] - launch, f"    {_act(act)}") for act in acts]
    store, last, tick = Store(header.epoch), None, 0.0
    used: list[tuple[float, int, float]] = []
    planned = None
    for event in events:
        while tick + TICK_S < event.t:
            tick += TICK_S
            last = _note(store.step(Event(tick, "tick")), header.epoch - launch, last, rows)
        snapshot = store.step(event)
        last = _note(snapshot, header.epoch - launch, last, rows)
        planned = snapshot.memory_plans or planned
        if event.kind == "gpu":
            used += [(header.epoch + event.t, gpu.index, (gpu.used_bytes or 0) / MIB) for gpu in snapshot.gpu.gpus]
    yield f"== {run.name}"
    yield from (f"{at:7.1f} {text}"[:260] for at, text in sorted(rows))
    yield f"  plan: {_plan(store.snapshot, planned)}"
    yield f"  nvidia-smi: {_against_smi(run, used)}"
    yield f"  NCCL RAS: {_ras(store.snapshot)}"


def _act(act: dict[str, Any]) -> str:
    return f"DONE {act['do']} " + json.dumps(
        {name: value for name, value in act.items() if name not in ("wall", "do", "argv")}
    )


def _note(snapshot: Snapshot, ahead_s: float, last: Any, rows: list[tuple[float, str]]) -> Any:
    verdict = snapshot.verdict
    now = (
        verdict.state,
        verdict.rule,
        verdict.phase,
        verdict.odd_ranks,
        verdict.headline if verdict.state in ALARMS else "",
    )
    if now != last:
        mark = "  ! " if verdict.state in ALARMS else "    "
        rows.append((snapshot.t + ahead_s, f"{mark}{verdict.state} {','.join(verdict.odd_ranks)} {verdict.headline}"))
        warned = [one.text for one in snapshot.forecasts if one.level == "warning"]
        if warned and (last is None or last[0] != now[0]):
            rows.append((snapshot.t + ahead_s, f"      warned: {'; '.join(warned)}"))
    return now


def _plan(snapshot: Snapshot, plans: Any) -> str:
    took = taken(snapshot)
    if not plans:
        return "none"
    plan, words = plans[0], []
    for name in ("context", "weights", "kv", "graph"):
        expected, real = getattr(plan, f"{name}_bytes", None), getattr(took, f"{name}_bytes", None)
        words.append(f"{name} {_gib(expected)} expected, {_gib(real)} taken")
    return (
        f"free {_gib(plan.free_bytes)}, share {plan.share} {plan.share_from}, learned {plan.learned}; "
        + "; ".join(words)
    )


def _ras(snapshot: Snapshot) -> str:
    ras = snapshot.ras
    if ras is None:
        return "not asked"
    sizes = ", ".join(f"{len(one.ranks)} ranks" for one in ras.communicators)
    return f"{ras.answer} at {ras.address}; communicators: {sizes or 'none'}"


def _gib(value: float | None) -> str:
    return "?" if value is None else f"{value / GIB:.2f}"


def _against_smi(run: Path, used: list[tuple[float, int, float]]) -> str:
    """Pairs of a sample and a reading while the memory stands still."""
    path = run / "smi.csv"
    apart: list[float] = []
    for line in path.read_text().splitlines() if path.exists() else ():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 3 or not cells[2].isdigit():
            continue
        at = datetime.strptime(cells[0], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=timezone.utc).timestamp()
        near = [mib for t, index, mib in used if index == int(cells[1]) and abs(t - at) <= PAIR_S]
        around = [mib for t, index, mib in used if index == int(cells[1]) and abs(t - at) <= 3]
        if near and max(around) - min(around) < 1:
            apart.append(abs(float(cells[2]) - near[0]))
    if not apart:
        return "no pairs"
    close = sum(one <= 1 for one in apart) / len(apart)
    return f"{len(apart)} pairs, median {statistics.median(apart):.1f} MiB, {close:.0%} within 1 MiB, largest {max(apart):.0f}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
