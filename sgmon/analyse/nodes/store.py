"""Events of several nodes in, snapshots of the whole out. The same face as ``sgmon.analyse.store.Store``.

Each node has a store of its own; an event is folded into one of them. The whole is put together at the ticks of the
watch, and only when a node has changed, or one has fallen silent. A node that is silent keeps its last snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sgmon.analyse.next_snapshot import probe_status, with_note, with_verdict
from sgmon.analyse.nodes.compare import compared
from sgmon.analyse.nodes.merge import Parts, head_of, merged
from sgmon.analyse.nodes.node import Node
from sgmon.analyse.nodes.verdict import judge
from sgmon.analyse.nodes.whole import whole_of
from sgmon.analyse.store import Store
from sgmon.model import Baseline, ComparedValue, Event, NodeView, ProbeReading, ProbeStatus, Snapshot, Verdict

if TYPE_CHECKING:
    from sgmon.analyse.stacks.causes import Cause

#: seconds between two looks at the whole while only the time has changed
IDLE_S = 1.0
#: kinds after which the whole is put together at once: people wait for them. Of a link only a change of its state is:
#: each node's link is measured again every few seconds, and a look for each would cost the square of the nodes.
_AT_ONCE = frozenset({"server", "stacks"})
#: what the engine says of itself
_OWN_PROBES = frozenset({"recording", "flight", "history", "baseline", "events", "command"})


class NodesStore:
    """Holds the nodes and the snapshot of the whole. ``step`` is the only way in."""

    def __init__(
        self, epoch: float, *, replay: str = "", user_causes: Sequence[Cause] = (), first: Store | None = None
    ) -> None:
        """first: what was folded before the first event that names a node; it is this machine's."""
        self.snapshot = Snapshot(epoch=epoch, replay=replay)
        self._epoch = epoch
        self._causes = user_causes
        self._nodes: dict[str, Node] = {}
        self._parts = Parts()
        self._probes: tuple[ProbeStatus, ...] = ()  # of the watch itself
        self._views: tuple[NodeView, ...] = ()
        self._compared: tuple[tuple[object, ...], tuple[ComparedValue, ...]] = ((), ())
        self._looked_t = -IDLE_S
        self._baseline: Baseline | None = None
        if first is not None and any(probe.last_ok_t is not None for probe in first.snapshot.probes):
            self._nodes[""] = Node("", epoch, first)

    def step(self, event: Event) -> Snapshot:
        """Fold one event in. Without a node it is the watch's own: a tick, a baseline, a file that it writes."""
        self.snapshot = replace(self.snapshot, t=max(self.snapshot.t, event.t))
        if not event.node and event.kind == "tick":
            return self._look()
        if not event.node and isinstance(event.reading, Baseline):
            self._baseline = event.reading
        elif not event.node and isinstance(event.reading, ProbeReading) and self._is_own(event.reading):
            self._probes = probe_status(self._probes, event)
        else:
            node = self._node(event.node)
            state = node.link_state
            node.step(event)
            return self._look() if event.kind in _AT_ONCE or node.link_state != state else self.snapshot
        return self.snapshot

    def note(self, *, saved: tuple[str, ...] | None = None, replay: str | None = None) -> Snapshot:
        """What the engine knows beside the events: files it has written, where a replay is."""
        self.snapshot = with_note(self.snapshot, saved, replay)
        return self.snapshot

    def verdict_without_history(self) -> Verdict:
        """The verdict of this moment, without the delay that keeps a screen from flapping: for a single look."""
        if not self._views:
            return self.snapshot.verdict
        head = head_of(self._views)
        whole = whole_of(self.snapshot, self._parts.of(self._views, head), head)
        return judge(replace(whole, snapshot=replace(self.snapshot, verdict=Snapshot().verdict)))

    def snapshot_of(self, name: str) -> Snapshot:
        """What is known of one node at this moment, in its own clock."""
        return self._node(name).snapshot

    def _node(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = Node(name, self._epoch, causes=self._causes)
            self._nodes = dict(sorted(self._nodes.items()))
        return node

    def _look(self) -> Snapshot:
        """The whole, if a node has changed or a second is over."""
        t = self.snapshot.t
        for node in self._nodes.values():
            node.catch_up(t)
        views = tuple(node.view(t) for node in self._nodes.values())
        same = len(views) == len(self._views) and all(a is b for a, b in zip(views, self._views, strict=True))
        if not views or (same and t - self._looked_t < IDLE_S):
            return self.snapshot
        self._views, self._looked_t = views, t
        head = head_of(views)
        self._give_baseline(head)
        parts = self._parts.of(views, head)
        new = replace(self.snapshot, compared=self._compare(views))
        new = merged(new, parts, head)
        new = replace(new, probes=(*head.snapshot.probes, *self._probes))
        self.snapshot = with_verdict(new, judge(whole_of(new, parts, head)))
        return self.snapshot

    def _is_own(self, reading: ProbeReading) -> bool:
        """Whether it is of the watch itself; else of this machine, which is one of the nodes."""
        return reading.name in _OWN_PROBES or "" not in self._nodes

    def _give_baseline(self, head: NodeView) -> None:
        """What is usual for this server: the head counts it."""
        if self._baseline is not None:
            reading, self._baseline = self._baseline, None
            self._nodes[head.name].store.step(Event(head.snapshot.t, "baseline", reading))

    def _compare(self, views: Sequence[NodeView]) -> tuple[ComparedValue, ...]:
        """Made again only when something that is compared has changed."""
        seen = tuple(
            part
            for v in views
            for part in (v.name, v.server, _collector(v), v.snapshot.gpu.driver, len(v.snapshot.log.milestones))
        )
        if seen != self._compared[0]:
            self._compared = (seen, compared(views))
        return self._compared[1]


def _collector(view: NodeView) -> str:
    return view.reading.collector if view.reading is not None else ""
