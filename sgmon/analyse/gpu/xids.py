"""Xids in words: NVIDIA's numbers for what a GPU or its driver has reported."""

from __future__ import annotations

from collections.abc import Sequence

#: those that end or explain a start (NVIDIA's Xid catalogue)
XIDS = {
    13: "graphics engine exception",
    31: "memory page fault",
    43: "GPU stopped processing",
    45: "clean-up after an earlier error or a kill",
    48: "double-bit ECC error",
    63: "row remapping",
    64: "row remapping failed",
    74: "NVLink error",
    79: "fell off the bus",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "GSP timeout",
    120: "GSP error",
}


def xid_words(xids: Sequence[int]) -> str:
    """ "Xid 79 (fell off the bus), 7"; each once, in the order in which they came."""
    seen = list(dict.fromkeys(xids))
    return "Xid " + ", ".join(f"{one} ({XIDS[one]})" if one in XIDS else str(one) for one in seen) if seen else ""
