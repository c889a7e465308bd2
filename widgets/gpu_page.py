"""One GPU in full: what differs, its memory and holders against the log's plan, its history, load, errors, slices."""

from __future__ import annotations

from sgmon.analyse.gpu.summary import GpuSummary, summaries
from sgmon.analyse.gpu.xids import xid_words
from sgmon.model import Gpu, Snapshot
from sgmon.text import clean
from sgmon.units import GIB, gib, percent, rate, size
from widgets.gpu_history import history, strip_rows
from widgets.gpu_text import growth_words, holder_words, power_line, whys
from widgets.line import Line, cell, wrap

_MISSING_NAMES = {
    "power_mw": "power",
    "limit_mw": "power limit",
    "util": "utilisation",
    "sm_clock": "SM clock",
    "ecc": "ECC errors",
    "mig": "MIG mode",
    "memory": "memory",
    "processes": "holders",
    "reserved_bytes": "driver's reserve",
}


def gpu_of(snapshot: Snapshot, index: int) -> Gpu | None:
    """The GPU with this index."""
    return next((gpu for gpu in snapshot.gpu.gpus if gpu.index == index), None)


def gpu_lines(snapshot: Snapshot, index: int, width: int) -> list[Line]:
    """Everything that is known of one GPU."""
    rows: list[Line] = []
    if snapshot.gpu.unavailable:
        rows += wrap(((" " + clean(snapshot.gpu.unavailable, 300), "bad"),), width, indent=1)
        rows += [((" fix: ", "key"), (clean(snapshot.gpu.remedy, 300), ""))] if snapshot.gpu.remedy else []
    gpu = gpu_of(snapshot, index)
    if gpu is None:
        return [*rows, ((f" GPU {index} is not there", "warn"),)]
    known = summaries(snapshot)
    summary = next(item for item in known if item.index == index)
    if gpu.error:
        rows += wrap(((" this GPU does not answer: ", "bad"), (clean(gpu.error, 200), "bad")), width, indent=1)
    for words, style in whys(gpu, summary, [one.index for one in known if one.work == "spins"]):
        rows += wrap(((" ! ", style), (words, style)), width, indent=3)
    rows += _memory(gpu, summary, width)
    rows += _plan(summary)
    rows += _expected(snapshot, index)
    rows += _history(snapshot, gpu, summary, width)
    rows += _load(gpu, summary)
    rows += _slices(gpu)
    rows += _missing(gpu)
    return rows


def _fact(name: str, words: str, style: str = "", note: str = "") -> Line:
    return ((f" {name:<16}", "info"), (words, style), (f"  {note}" if note else "", "dim"))


def _head(name: str) -> list[Line]:
    return [(), ((f" {name}", "title"),)]


def _memory(gpu: Gpu, summary: GpuSummary, width: int) -> list[Line]:
    rows = _head("memory")
    rows.append(memory_bar(gpu, summary, max(10, min(100, width - 2))))
    rows += wrap(bar_legend(gpu, summary), width, indent=1)
    reserve = f", {size(gpu.reserved_bytes)} are the driver's" if gpu.reserved_bytes else ""
    rows.append(
        _fact("used", f"{gib(gpu.used_bytes)} of {gib(gpu.total_bytes)} GiB", "strong", growth_words(summary))
    )
    rows.append(_fact("free", size(summary.free_bytes), "", f'as the log\'s "avail mem" counts it{reserve}'))
    for holding in summary.held:
        who = "no process" if holding.kind == "unaccounted" else holder_words(holding)
        note = "" if holding.kind != "rank" else f"pid {holding.pid}  {clean(holding.name, 80)}"
        note = "in use, but listed for no process" if holding.kind == "unaccounted" else note
        line = _fact(f"  {size(holding.used_bytes):>9}", who, "warn" if holding.foreign else "", note)
        rows.append(line)
    if not summary.held and not any(item.signal == "processes" for item in gpu.missing):
        rows.append(_fact("holders", "none is listed", "dim", "in a container the driver may hide them"))
    return rows


def memory_bar(gpu: Gpu, summary: GpuSummary, width: int) -> Line:
    """ "wwkkkkkkkkkkkkkkggr······": what holds the memory; letters, so that it reads without colours."""
    total = gpu.total_bytes
    if not total or gpu.used_bytes is None:
        return ((" " + "?" * width, "dim"),)
    spans: list[tuple[str, str]] = [(" ", "")]
    begin = 0.0
    for letter, style, _, value in _bar_parts(gpu, summary):
        cells = round((begin + value) / total * width) - round(begin / total * width)
        begin += value
        spans.append((letter * min(width, cells), style))
    spans.append(("·" * max(0, width - round(begin / total * width)), "track"))
    return tuple(span for span in spans if span[0])


def bar_legend(gpu: Gpu, summary: GpuSummary) -> Line:
    """ "w weights 15.3  k KV and pools 0.4  · free 123.8 GiB": the letters of the bar, as far as they occur."""
    if not gpu.total_bytes or gpu.used_bytes is None:
        return ((" ? the card does not tell", "dim"),)
    parts = [part for part in _bar_parts(gpu, summary) if part[3] >= GIB / 20]
    free = max(0.0, gpu.total_bytes - gpu.used_bytes)
    spans: list[tuple[str, str]] = [(" ", "")]
    for letter, style, name, value in (*parts, ("·", "track", "free", free)):
        spans += [(letter, style), (f" {name} {gib(value)}  ", "dim")]
    return (*spans[:-1], (spans[-1][0].rstrip() + " GiB", "dim"))


def _bar_parts(gpu: Gpu, summary: GpuSummary) -> list[tuple[str, str, str, float]]:
    """(letter, style, name, bytes) of what holds the memory. Weights, KV cache and graphs are what the log says."""
    parts: list[tuple[str, str, str, float]] = []
    left = float(sum(one.used_bytes or 0 for one in summary.held if one.kind == "rank"))
    for letter, style, name, value in (
        ("w", "info", "weights", summary.plan.weights_bytes),
        ("k", "accent", "KV and pools", summary.plan.kv_bytes),
        ("g", "ok", "graphs", summary.plan.graph_bytes),
    ):
        took = min(left, max(0.0, value or 0.0))
        parts.append((letter, style, name, took))
        left -= took
    parts.append(("r", "strong", "rest of the ranks (context, NCCL)", left))
    server = sum(one.used_bytes or 0 for one in summary.held if one.kind in ("server", "mps"))
    parts.append(("s", "", "other processes of the server", server))
    foreign = sum(one.used_bytes or 0 for one in summary.held if one.foreign)
    parts.append(("x", "warn", "processes of others", foreign))
    unlisted = max(0.0, (gpu.used_bytes or 0) - sum(value for *_, value in parts))
    parts.append(("?", "dim", "listed for no process", unlisted))
    return parts


def _plan(summary: GpuSummary) -> list[Line]:
    plan = summary.plan
    rows = _head("what the log says that the ranks took here (its GB are GiB)")
    known = [
        _fact(name, size(value), "strong")
        for name, value in (
            ("weights", plan.weights_bytes),
            ("KV and pools", plan.kv_bytes),
            ("graphs", plan.graph_bytes),
        )
        if value is not None
    ]
    if not known and plan.free_bytes is None:
        return [*rows, ((" nothing yet", "dim"),)]
    rows += known
    if plan.free_bytes is not None:
        note = ""
        if summary.free_bytes is not None:
            apart = summary.free_bytes - plan.free_bytes
            note = f"the card has {gib(summary.free_bytes)} now, {size(abs(apart))} {'more' if apart > 0 else 'less'}"
        rows.append(_fact("left", size(plan.free_bytes), "", note))
    return rows


def _expected(snapshot: Snapshot, index: int) -> list[Line]:
    """What the ranks were expected to take here, beside the same numbers above."""
    plan = next((one for one in snapshot.memory_plans if one.gpu == index), None)
    if plan is None or plan.weights_bytes is None:
        return []
    source = f"{plan.learned} finished starts" if plan.learned else "the headers of the shards"
    rows = _head(f"what a rank was expected to take here, by {source}")
    rows.append(_fact("weights", size(plan.weights_bytes), "strong", f"error up to {plan.error:.0%}"))
    if plan.kv_bytes is not None:
        share = {"argument": "asked for", "formula": "as the server computes it", "default": "its default"}
        tokens = "" if plan.tokens is None else f"{plan.tokens:,} tokens; "
        note = f"{tokens}share {plan.share}, {share.get(plan.share_from, '')}"
        rows.append(_fact("KV and pools", size(plan.kv_bytes), "strong", note))
        rows.append(_fact("graphs", "?", "dim", f"with activations they have {size(plan.reserve_bytes)}"))
    return rows


def _history(snapshot: Snapshot, gpu: Gpu, summary: GpuSummary, width: int) -> list[Line]:
    series = {item.name: item.points for item in snapshot.series if item.name.startswith(f"gpu{gpu.index}.")}
    used, util, power = (series.get(f"gpu{gpu.index}.{what}", ()) for what in ("used", "util", "power"))
    rows = _head("since the first reading; a blank is a time without one")
    if not used:
        return [*rows, ((" nothing yet", "dim"),)]
    limit = gpu.power_limit_w or max((value for _, value in power if value is not None), default=1.0)
    shown = history(used, util, power, snapshot.t)
    return [*rows, *strip_rows(shown, summary.stages, (float(gpu.total_bytes or 1), limit), width)]


def _load(gpu: Gpu, summary: GpuSummary) -> list[Line]:
    limit = f"limit {gpu.power_limit_w:.0f} W" if gpu.power_limit_w is not None else ""
    words = {"spins": "spins in a collective", "works": "at work", "idle": "idle"}.get(summary.work, "not known yet")
    pcie = f"in {rate(gpu.pcie_rx_bytes_s)}, out {rate(gpu.pcie_tx_bytes_s)}"
    ecc = "?" if gpu.ecc_errors is None else str(gpu.ecc_errors)
    return [
        *_head("load"),
        _fact("utilisation", percent(gpu.util_percent), "strong", f"the last ten seconds: {words}"),
        ((f" {'power':<16}", "info"), power_line(gpu, summary)[0], (f"  {limit}", "dim")),
        _fact("temperature", "?" if gpu.temperature_c is None else f"{gpu.temperature_c} °C"),
        _fact("SM clock", "?" if gpu.sm_clock_mhz is None else f"{gpu.sm_clock_mhz} MHz"),
        _fact("PCIe", pcie, "", "over 20 ms, every 10 s"),
        _fact("throttled by", clean(", ".join(gpu.throttle), 120) or "nothing", "warn" if gpu.throttle else ""),
        _fact("ECC errors", ecc, "bad" if gpu.ecc_errors else "", "uncorrected, since the driver was loaded"),
        _fact("Xid", xid_words(gpu.xids) or "none", "bad" if gpu.xids else "", "since the watch began"),
    ]


def _slices(gpu: Gpu) -> list[Line]:
    if not gpu.slices:
        return []
    rows = _head("MIG slices")
    for part in gpu.slices:
        holders = ", ".join(f"{one.rank or clean(one.name, 40)} pid {one.pid}".strip() for one in part.processes)
        rows.append(
            (
                cell(f" {part.slot:>3}  {clean(part.name, 30)}", 36),
                (f"{gib(part.used_bytes)} of {gib(part.total_bytes)} GiB", "strong"),
                (f"  {holders or 'no holder listed'}", "dim"),
            )
        )
    return rows


def _missing(gpu: Gpu) -> list[Line]:
    """What this card or driver does not tell, and why."""
    if not gpu.missing:
        return []
    rows = _head("not available")
    return rows + [
        _fact(_MISSING_NAMES.get(item.signal, clean(item.signal, 16)), clean(item.why, 160), "warn")
        for item in gpu.missing
    ]
