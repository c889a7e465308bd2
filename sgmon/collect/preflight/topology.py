"""Where the GPUs lie in the machine: NUMA nodes, the IOMMU, the driver's settings. Files of the kernel alone."""

from __future__ import annotations

import os
import re

from sgmon.model.preflight import Card, Topology
from sgmon.patterns import regex
from sgmon.proc import files
from sgmon.text import clean

_BUS = regex(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", re.IGNORECASE)
_NODE = regex(r"node\d+")
_MINOR = regex(r"^Device Minor:\s*(\d+)", re.MULTILINE)
_REGISTRY = regex(r"^RegistryDwords(?:PerDevice)?:\s*\"(.+)\"", re.MULTILINE)


def look(root: str = "/proc", system: str = "/sys") -> Topology:
    """/proc/driver/nvidia (README of the driver, "The /proc Filesystem Interface") has a folder for each GPU, named
    by its bus address; /sys/bus/pci/devices has its NUMA node (-1: none) and its IOMMU group."""
    cards = (_card(f"{root}/driver/nvidia/gpus/{bus}", bus, system) for bus in _names(f"{root}/driver/nvidia/gpus"))
    found = _REGISTRY.findall(_text(f"{root}/driver/nvidia/params"))
    return Topology(
        tuple(sorted((card for card in cards if card is not None), key=lambda card: card.minor)),
        sum(bool(_NODE.fullmatch(name)) for name in _names(f"{system}/devices/system/node")) or None,
        clean("; ".join(found), 200),
    )


def _card(folder: str, bus: str, system: str) -> Card | None:
    minor = _MINOR.search(_text(f"{folder}/information"))
    if minor is None or not _BUS.fullmatch(bus):
        return None
    device = f"{system}/bus/pci/devices/{bus.lower()}"
    node = _text(f"{device}/numa_node").strip()
    return Card(
        int(minor[1]), bus, int(node) if node.isdigit() else None, _text(f"{device}/iommu_group/type").strip()
    )


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        return files.text(path)
    except (OSError, ValueError):
        return ""
