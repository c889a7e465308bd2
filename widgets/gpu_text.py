"""One GPU in words: why it differs, who holds its memory, its power beside its own levels, what the log planned."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.analyse.gpu.holders import Holding, in_the_way
from sgmon.analyse.gpu.summary import GpuSummary
from sgmon.analyse.gpu.xids import xid_words
from sgmon.model import Gpu
from sgmon.text import clean
from sgmon.units import gib, lasting, plural, rank_list, rate, size
from widgets.line import Line


def whys(gpu: Gpu, summary: GpuSummary, spinning: Sequence[int] = ()) -> tuple[tuple[str, str], ...]:
    """(sentence, style) for everything that sets this GPU apart or is wrong with it, the worst first."""
    reasons: list[tuple[str, str]] = []
    if gpu.xids:
        reasons.append((f"the driver reported {xid_words(gpu.xids)}", "bad"))
    if "spins" in summary.findings:
        reasons.append((f"spins in a collective: pinned at 100 %, {_flat_low(gpu, summary)}", "odd"))
    if "waited-for" in summary.findings:
        who = f"GPU{'s' if len(spinning) > 1 else ''} {rank_list([str(index) for index in spinning])}"
        who = who if spinning else "another GPU"
        does = "spin" if len(spinning) > 1 else "spins"
        reasons.append((f"waited for: idle while {who} {does} in a collective", "odd"))
    if "foreign" in summary.findings:
        reasons += [
            (f"{_amount(holding)} held by {holder_words(holding)}", "warn")
            for holding in in_the_way(gpu, summary.held)[:2]
        ]
    if "apart" in summary.findings and summary.usual_bytes is not None and gpu.used_bytes is not None:
        apart = gpu.used_bytes - summary.usual_bytes
        words = f"holds {size(abs(apart))} {'more' if apart > 0 else 'less'} than the GPUs of the other ranks"
        reasons.append((words, "odd"))
    if gpu.throttle:
        reasons.append((f"throttled: {clean(', '.join(gpu.throttle), 80)}", "warn"))
    if gpu.ecc_errors:
        reasons.append((f"{plural(gpu.ecc_errors, 'uncorrected ECC error')} since the driver was loaded", "warn"))
    return tuple(reasons)


def holder_words(held: Holding) -> str:
    """Who that is: "TP1", "pid 4711, sglang::scheduler of a server that is gone"."""
    name = clean(held.name, 60)
    return {
        "rank": held.rank or "the scheduler",
        "server": f"pid {held.pid}, {name or 'another process'} of this server",
        "orphan": f"pid {held.pid}, {name} of a server that is gone",
        "other-server": f"pid {held.pid}, {name} of another server",
        "unseen": f"pid {held.pid}, which is not in this /proc",
        "mps": f"the MPS server, pid {held.pid}, for its clients",
        "unaccounted": "no listed process",
    }.get(held.kind, f"pid {held.pid} {name}".rstrip())


def _amount(held: Holding) -> str:
    return size(held.used_bytes) if held.used_bytes is not None else "an unknown part"


def held_line(gpu: Gpu, summary: GpuSummary) -> Line:
    """ "held: TP0 128.3, pid 7 python train.py 2.0 GiB"; or that nobody is listed."""
    if not summary.held:
        words = "nobody holds memory" if gpu.used_bytes == 0 else "no holder is listed"
        words = "holders not readable" if any(item.signal == "processes" for item in gpu.missing) else words
        return ((words, "dim"),)
    spans: list[tuple[str, str]] = [("held: ", "dim")]
    for index, holding in enumerate(summary.held[:4]):
        who = "unaccounted" if holding.kind == "unaccounted" else holder_words(holding)
        spans.append((f"{', ' if index else ''}{who} ", "warn" if holding.foreign else ""))
        spans.append((gib(holding.used_bytes), "strong"))
    spans.append((" GiB", "dim"))
    if len(summary.held) > 4:
        spans.append((f" +{len(summary.held) - 4} more", "dim"))
    return tuple(spans)


#: a rate over ten seconds is still high when the growth is over; weights come in bursts that are seconds apart
_STILL_S = 4.0


def growth_words(summary: GpuSummary) -> str:
    """ "+507 MiB/s", "flat for 47s", "flat for at least 2m05s"; "" when not known."""
    growth = summary.growth
    still = growth.flat_s is not None and growth.flat_s >= _STILL_S
    if growth.rate is not None and abs(growth.rate) >= 2**20 and not still:
        return f"{'+' if growth.rate > 0 else '-'}{rate(abs(growth.rate))}"
    if growth.flat_s is None or growth.flat_s < 2:
        return ""
    return f"flat for {'at least ' if growth.at_least else ''}{lasting(growth.flat_s)}"


def power_line(gpu: Gpu, summary: GpuSummary) -> Line:
    """ "125 W flat (idle level 122 W, work up to 136 W), 1980 MHz, PCIe in 1.0 MiB/s out 0.8 MiB/s"."""
    spans: list[tuple[str, str]] = [(_power_now(gpu, summary), "odd" if summary.work == "spins" else "")]
    if gpu.pcie_rx_bytes_s is not None or gpu.pcie_tx_bytes_s is not None:
        spans.append((f"  PCIe in {rate(gpu.pcie_rx_bytes_s)} out {rate(gpu.pcie_tx_bytes_s)}", "dim"))
    if gpu.sm_clock_mhz is not None:
        spans.append((f"  {gpu.sm_clock_mhz} MHz", "dim"))
    return tuple(spans)


def _power_now(gpu: Gpu, summary: GpuSummary) -> str:
    seen = summary.levels
    now = "power not known" if gpu.power_w is None else f"{gpu.power_w:.0f} W"
    if gpu.power_w is not None and seen.low_w is not None and seen.high_w is not None:
        now = f"{gpu.power_w:.0f} W flat" if seen.flat else f"{seen.low_w:.0f}-{seen.high_w:.0f} W"
    own = _own_levels(summary)
    return f"{now} ({own})" if own else now


def _flat_low(gpu: Gpu, summary: GpuSummary) -> str:
    idle_w = summary.levels.idle_w
    now = "" if gpu.power_w is None else f" {gpu.power_w:.0f} W"
    return f"flat low power{now}" if idle_w is None else f"flat{now}, not far above its idle level ({idle_w:.0f} W)"


def _own_levels(summary: GpuSummary) -> str:
    seen = summary.levels
    own = [] if seen.idle_w is None else [f"idle level {seen.idle_w:.0f} W"]
    own += [f"work up to {seen.work_w:.0f} W"] if seen.work_w is not None else []
    return ", ".join(own)


def plan_line(summary: GpuSummary) -> Line:
    """ "log: weights 7.7 + KV 117.8 GiB, 12.3 GiB left; the card has 11.4 free"; () before the log says any."""
    plan = summary.plan
    parts = [
        f"{name} {gib(value)}"
        for name, value in (("weights", plan.weights_bytes), ("KV", plan.kv_bytes), ("graphs", plan.graph_bytes))
        if value is not None
    ]
    if not parts and plan.free_bytes is None:
        return ()
    took = " + ".join(parts) + " GiB" if parts else ""
    spans: list[tuple[str, str]] = [(f"log: {took}", "")]
    if plan.free_bytes is not None:
        spans.append((f"{', ' if took else ''}{gib(plan.free_bytes)} GiB left", ""))
    if summary.free_bytes is not None:
        spans.append((f"; the card has {gib(summary.free_bytes)} free", "dim"))
    return tuple(spans)
