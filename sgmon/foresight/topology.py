"""What lies between the GPUs of the ranks: peer access, the IOMMU, NUMA nodes. Slow or stuck collectives: doubts."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doubt, fine, unknown
from sgmon.model.preflight import Card, Forecast
from sgmon.model.verdict import NextStep
from sgmon.units import plural


def peers(start: Start) -> Iterator[Forecast]:
    """The ranks' GPUs can read each other's memory. Without it collectives go through host memory (NCCL user guide,
    NCCL_P2P_DISABLE)."""
    used = {gpu.index for gpu in start.gpus}
    if start.on_cpu or len(used) < 2:
        return
    between = [link for link in start.links if {link.one, link.two} <= used]
    if not between:
        yield unknown("peers", "peer access", "it is not told which GPUs can read each other's memory", "gpu")
        return
    apart = [link for link in between if link.peer != "ok"]
    if apart:
        more = f", and {plural(len(apart) - 1, 'more pair')}" if len(apart) > 1 else ""
        text = f"GPU {apart[0].one} and {apart[0].two} cannot read each other's memory ({apart[0].peer}){more}"
        step = NextStep("See what connects them: collectives go through host memory", "nvidia-smi topo -p2p r")
        yield doubt("peers", "peer access", text, step, signal="gpu")
    elif start.facts.variable("NCCL_P2P_DISABLE") == "1":
        yield doubt("peers", "peer access", "the GPUs have it, and NCCL_P2P_DISABLE=1 switches it off", signal="gpu")
    else:
        by = "NVLink" if all(link.nvlink for link in between) else "PCIe" if _over_pcie(start) else "not told by what"
        yield fine("peers", "peer access", f"{plural(len(between), 'pair')} of GPUs, {by}", "gpu")


def iommu(start: Start) -> Iterator[Forecast]:
    """Peer access over PCIe without an IOMMU that translates: through it such transfers are slow or hang (NCCL user
    guide, troubleshooting, "PCI Access Control Services")."""
    cards = _cards(start)
    translated = [card for card in cards if card.iommu.startswith("DMA")]
    if start.on_cpu or len(cards) < 2 or not translated or not _over_pcie(start):
        return
    text = f"the IOMMU translates addresses of {plural(len(translated), 'GPU')}: peer access over PCIe may hang"
    step = NextStep("If the ranks hang in their first collective: NCCL_P2P_DISABLE=1; for good: iommu=pt")
    yield doubt("iommu", "IOMMU", text, step, signal="gpu")


def numa(start: Start) -> Iterator[Forecast]:
    """On which NUMA nodes the ranks' GPUs are: a note."""
    cards, nodes = _cards(start), start.facts.topology.nodes
    if start.on_cpu or not cards or nodes is None or nodes < 2:
        return
    if any(card.node is None for card in cards):
        yield unknown("numa", "NUMA nodes", "the machine does not tell on which node each GPU is", "gpu")
        return
    each = {
        node: [card for card in cards if card.node == node] for node in sorted({card.node or 0 for card in cards})
    }
    text = ", ".join(f"{plural(len(found), 'GPU')} on node {node}" for node, found in each.items())
    yield fine("numa", "NUMA nodes", text, "gpu")


def driver_settings(start: Start) -> Iterator[Forecast]:
    """The driver is as it is delivered. Settings of its registry change peer access (README of the driver)."""
    words = start.facts.topology.registry
    if not start.on_cpu and len(start.gpus) > 1 and "P2P" in words.upper():
        step = NextStep("Look at them if the ranks hang", "cat /proc/driver/nvidia/params")
        yield doubt(
            "driver-settings", "driver settings", f"the driver has settings of its own: {words}", step, signal="gpu"
        )


def _cards(start: Start) -> list[Card]:
    """Those of the ranks' GPUs."""
    minors = {gpu.minor for gpu in start.gpus if gpu.minor is not None}
    return [card for card in start.facts.topology.cards if card.minor in minors]


def _over_pcie(start: Start) -> bool:
    """Whether any two of the ranks' GPUs have peer access and no NVLink, for sure."""
    used = {gpu.index for gpu in start.gpus}
    return any(link.peer == "ok" and link.nvlink is False for link in start.links if {link.one, link.two} <= used)
