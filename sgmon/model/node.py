"""A node: one machine of a server that runs on several, and how the watch reaches it."""

from __future__ import annotations

from msgspec import Struct

#: states of a node's link. "lost" is tried again; "ended" and "failed" are not
NODE_STATES = ("connecting", "live", "stale", "lost", "ended", "failed")


class NodeReading(Struct, frozen=True):
    """What the transport knows of a node. since_t: last word from the node, in seconds of this watch.

    offset_s: the far clock minus ours; offset_error_s: half of the round trip that measured it. hostname: what the
    node calls itself. collector, python: versions of what runs there. why, remedy: of a state that is not "live".
    """

    name: str
    state: str
    why: str = ""
    remedy: str = ""
    since_t: float | None = None
    offset_s: float | None = None
    offset_error_s: float | None = None
    round_trip_s: float | None = None
    hostname: str = ""
    collector: str = ""
    python: str = ""
    bytes_per_s: float | None = None


class ComparedValue(Struct, frozen=True):
    """A version, flag or variable side by side. kind: "version" | "flag" | "env".

    values: one a node in the order of ``Snapshot.nodes``, None where it is not known, "" where it is not given.
    differs: two known values are not the same and should be.
    """

    kind: str
    name: str
    values: tuple[str | None, ...]
    differs: bool = False
