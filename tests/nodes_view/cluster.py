"""Made-up nodes of one server in front of the real NodesStore: a ``World`` of tests/diagnosis for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from sgmon.analyse.nodes.store import NodesStore
from sgmon.model import Event, NodeReading, Server, ServerArgs, ServerReading, Snapshot, Verdict
from tests.diagnosis.verdict_history import VerdictHistory
from tests.diagnosis.world import World


class _NodeWorld(World):
    """Its events carry its node's name, and come to the cluster."""

    def __init__(self, cluster: Cluster, name: str, **more: Any) -> None:
        self.cluster, self.name = cluster, name
        self.t0 = 0.0
        super().__init__(**more)

    def step(self, event: Event) -> None:
        self.cluster.emit(self.name, event)


class Cluster(VerdictHistory):
    """``nodes`` of ``per_node`` ranks each, called node-a, node-b, ... Cut nodes go on, and their events are lost.
    own_servers: each node runs a whole server."""

    def __init__(
        self,
        nodes: int = 2,
        per_node: int = 2,
        *,
        offsets: Sequence[float] = (),
        error_s: float | None = 0.01,
        gpu: bool = True,
        started: Sequence[bool] = (),
        own_servers: bool = False,
    ) -> None:
        super().__init__()
        self.store = NodesStore(0.0)
        self.t = 0.0
        self.events: list[Event] = []
        self.cut: dict[str, NodeReading | None] = {}
        self.worlds: dict[str, _NodeWorld] = {}
        self.names = [f"node-{chr(97 + i)}" if nodes <= 26 else f"node-{i:02}" for i in range(nodes)]
        self._quiet: set[str] = set()
        tp = nodes * per_node
        for index, name in enumerate(self.names):
            offset = offsets[index] if index < len(offsets) else 0.0
            link = NodeReading(name, "live", offset_s=offset, offset_error_s=error_s, hostname=name)
            self.emit(name, Event(0.0, "node", link))
            if index < len(started) and not started[index]:
                self._quiet.add(name)
                self.emit(name, Event(0.0, "server", ServerReading(looked_for="a server")))
            self.worlds[name] = _NodeWorld(
                self,
                name,
                tp=per_node,
                args=ServerArgs(tp=per_node, model_path="/models/m") if own_servers else self._args(nodes, index, tp),
                gpu=gpu,
                names=[f"TP{(0 if own_servers else index * per_node) + i}" for i in range(per_node)],
            )

    @staticmethod
    def _args(nodes: int, index: int, tp: int) -> ServerArgs:
        raw = (("tp_size", str(tp)), ("nnodes", str(nodes)), ("node_rank", str(index)))
        return ServerArgs(
            tp=tp,
            nnodes=nodes,
            node_rank=index,
            model_path="/models/m",
            dist_init_addr="10.0.0.1:20000",
            raw=raw,
        )

    def __getitem__(self, name: str) -> _NodeWorld:
        return self.worlds[name]

    def emit(self, name: str, event: Event) -> None:
        if name in self.cut or (name in self._quiet and event.kind != "node" and not self._says_nothing(event)):
            return
        event = replace(event, node=name)
        self.events.append(event)
        self.note(self.store.step(event))

    @staticmethod
    def _says_nothing(event: Event) -> bool:
        return isinstance(event.reading, ServerReading) and event.reading.server is None

    def begin(self, name: str) -> None:
        """The server of a node that had none is started."""
        self._quiet.discard(name)
        world = self.worlds[name]
        server = Server(
            100, 1, args=world.args, args_source="command line", version="0.5.17", log_path="/tmp/server.log"
        )
        self.emit(name, Event(self.t, "server", ServerReading(replace(server, log_kind="file"))))

    def cut_link(self, name: str, state: str = "", why: str = "") -> None:
        """Nothing more comes from this node; the transport says so where ``state`` is given."""
        if state:
            self.emit(name, Event(self.t, "node", NodeReading(name, state, why=why, since_t=self.t)))
        self.cut[name] = None

    def forget(self, name: str) -> None:
        """As if this node had never said more than that its link is tried."""
        self.cut[name] = None
        events, self.events, self.store = self.events, [], NodesStore(0.0)
        self.history.clear()
        for event in events:
            if event.node != name or event.kind == "node":
                self.events.append(event)
                self.note(self.store.step(event))

    def mend_link(self, name: str) -> None:
        """Its events come again."""
        self.cut.pop(name, None)
        self.emit(name, Event(self.t, "node", NodeReading(name, "live", offset_s=0.0, offset_error_s=0.01)))

    def everywhere(self, words: str) -> None:
        for world in self.worlds.values():
            world.everywhere(words)

    def to(self, phase: str) -> Cluster:
        """Every node's log up to a phase; the lines of the server itself are the head's alone."""
        for index, world in enumerate(self.worlds.values()):
            if index == 0 or phase not in ("http", "warmup", "ready"):
                world.to(phase)
            else:
                world.to("graphs")
        return self

    def run(self, seconds: float) -> Cluster:
        """Let time pass on all nodes, a tick of the watch each half second."""
        end = self.t + seconds
        while self.t + 1 <= end:
            for name, world in self.worlds.items():
                if name in self._quiet:
                    world.t = self.t + 1
                    self.emit(name, Event(world.t, "server", ServerReading(looked_for="a server")))
                else:
                    world.run(1)
            self.t += 1
            for at in (self.t, self.t + 0.5):
                tick = Event(at, "tick")
                self.events.append(tick)
                self.note(self.store.step(tick))
        return self

    @property
    def snapshot(self) -> Snapshot:
        return self.store.snapshot

    @property
    def verdict(self) -> Verdict:
        return self.store.snapshot.verdict
