"""Everything that the rules over all nodes look at, drawn once from the merged snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sgmon.analyse.diagnosis.context import Context, context_of, looked_t
from sgmon.analyse.nodes.merge import Part, all_ranks
from sgmon.model import Evidence, NextStep, NodeView, ProbeStatus, ProcsReading, Rank, RankState, Snapshot, Verdict
from sgmon.units import lasting, plural

#: of so many nodes a sentence gives the names; of more it gives the number
NAMED = 3


class Whole(Struct, frozen=True):
    """All nodes at one moment. parts: of every node, in the order of their names; head: node rank 0.

    views: of all nodes; heard: of those whose word is fresh; silent: of those of which nothing is known now.
    t: now; cut_t: the last moment of which every heard node has told.
    """

    snapshot: Snapshot
    parts: tuple[Part, ...]
    head: NodeView
    t: float
    cut_t: float
    views: tuple[NodeView, ...]
    heard: tuple[NodeView, ...]
    silent: tuple[NodeView, ...]

    @property
    def is_one_server(self) -> bool:
        """Whether the nodes run one server together, by its own arguments; else each has a server of its own."""
        return not self.snapshot.has_own_servers

    def in_state(self, *states: str) -> list[NodeView]:
        """Heard nodes whose own verdict has one of these states."""
        return [view for view in self.heard if view.server is not None and view.verdict.state in states]

    def waiting(self, beside: Iterable[NodeView]) -> list[Rank]:
        """Live ranks of the other heard nodes that show no activity."""
        names = {view.name for view in beside}
        ranks = (r for part in self.parts if part.view.heard and part.view.name not in names for r in part.ranks)
        return [r for r in ranks if r.state is not RankState.GONE and not r.active(self.cut_t)]


def whole_of(snapshot: Snapshot, parts: Sequence[Part], head: NodeView) -> Whole:
    """``snapshot``: the merged one, with the verdict of before."""
    views = tuple(part.view for part in parts)
    heard = tuple(view for view in views if view.heard)
    silent = tuple(view for view in views if not view.heard)
    cut_t = min((view.snapshot.t for view in heard), default=snapshot.t)
    return Whole(snapshot, tuple(parts), head, snapshot.t, cut_t, views, heard, silent)


def judged(whole: Whole) -> Context:
    """The heard nodes as one server, for the rules that compare ranks. Without what means something on one machine
    only: processes, ports, RAS."""
    heard = [part for part in whole.parts if part.view.heard]
    snapshot, server = whole.snapshot, whole.head.server
    if server is not None and not whole.silent:  # all of it is seen: no other node can be meant
        server = replace(server, args=replace(server.args, nnodes=1, node_rank=0))
    logs = [part.view.snapshot.log for part in heard]
    active = [log.last_activity_t for log in logs if log.last_activity_t is not None]
    log = replace(snapshot.log, args=None, last_activity_t=max(active, default=None))
    looked = [looked_t(part.view.snapshot) for part in heard]
    return context_of(
        replace(
            snapshot,
            t=whole.cut_t,
            nodes=(),
            server=server,
            ranks=all_ranks(heard) if whole.silent else snapshot.ranks,
            clocks=tuple(clock for part in heard for clock in part.helpers),
            procs=ProcsReading(),
            probes=(ProbeStatus("procs", last_ok_t=min(looked, default=None)),),
            log=log,
            ras=None,
            port=None,
        )
    )


def named(views: Sequence[NodeView]) -> str:
    """ "node-b", "node-b and node-c", "61 nodes"."""
    names = [view.name or "this machine" for view in views]
    if len(names) > NAMED:
        return plural(len(names), "node")
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "no node"


def silence(whole: Whole, view: NodeView) -> str:
    """ "no word for 12s (its link or the host)": for how long, and what is known of the reason."""
    reading, last_t = view.reading, view.snapshot.t or None
    if reading is not None and reading.since_t is not None:
        last_t = max(last_t or 0.0, reading.since_t)
    words = "no word yet" if last_t is None else f"no word for {lasting(whole.t - last_t)}"
    why = reading.why if reading is not None else ""
    return f"{words}: {why}" if why else f"{words} (its link or the host)"


def link_step(view: NodeView) -> NextStep:
    """What helps against the silence of a node."""
    remedy = view.reading.remedy if view.reading is not None else ""
    return NextStep(f"{view.name}: {remedy}" if remedy else f"See whether {view.name} answers, and whether it runs")


def silent_facts(whole: Whole) -> list[Evidence]:
    """One fact a silent node; of many one for all."""
    silent = whole.silent
    if len(silent) > NAMED:
        return [
            Evidence("node", f"{named(silent)} of {len(whole.parts)} are silent, {silent[0].name} the first of them")
        ]
    return [
        Evidence("node", f"{view.name}: {silence(whole, view)}; its ranks are unknown, not stopped")
        for view in silent
    ]


def on_node(verdict: Verdict, view: NodeView) -> Verdict:
    """What a node's own rules say, with the node before it."""
    headline = f"{view.name or 'this machine'}: {verdict.headline}"
    return replace(verdict, headline=headline, nodes=(view.name,), next=steps_on(verdict.next, (view.name,)))


def steps_on(steps: Sequence[NextStep], nodes: Sequence[str]) -> tuple[NextStep, ...]:
    """Next steps with the node on which their commands are to be run; our own commands run here."""
    node = nodes[0] if nodes else ""
    return tuple(
        replace(step, text=f"{step.text}, on {node}")
        if node and step.command and not step.command.startswith("sgmon ") and node not in step.text
        else step
        for step in steps
    )
