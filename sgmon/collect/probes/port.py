"""The HTTP port: who listens (from /proc), and only then what /health says. One request in flight, and rarely:
each /health makes the server generate a token and write log lines."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sgmon.collect.probes.addresses import PICKS, UNTOLD, PickedPort, asked_host, reachable
from sgmon.collect.probes.base import Watched
from sgmon.collect.probes.health_request import Answer, Target, health_client, speaks_tls
from sgmon.collect.probes.listeners import Listeners
from sgmon.collect.probes.netns import InNamespace
from sgmon.collect.probes.unix_path import connectable
from sgmon.model import Listener, PortReading, Server, ServerArgs
from sgmon.servers import registry
from sgmon.text import clean
from sgmon.units import plural

if TYPE_CHECKING:
    from sgmon.collect.probes.health_request import HealthClient
    from sgmon.collect.probes.plain_http import PlainClient

LOOK_S = 2.0  # nothing listens: /proc only
STARTING_S = 2.5  # any answer but 200
READY_S = 10.0
PAUSE_MOST_S = 30.0  # each unanswered request stays in the accept queue of a server that never accepts
CONNECT_S = 2.0
FIRST_ANSWER_S = 5.0  # /health takes 1.0 s when ready, 2.5 s on a busy machine
ANSWER_S = 22.0  # a ready server whose scheduler hangs says 503 after 20 s
_AWAY = "the server has a network namespace of its own (a container)"


class PortProbe:
    """One look at host:port. ``interval_s`` follows what was seen last."""

    name = "port"
    kind = "port"
    deadline_s = ANSWER_S + 5.0

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._now = watched.clock.now
        self._listeners = Listeners(watched.settings.proc_root)
        self._picked = PickedPort(watched.settings.proc_root, self._listeners)
        self._further: dict[int, Listeners] = {}  # port -> its listeners, whose owners are remembered
        self._server: tuple[int, int] | None = None
        self._was_ready = False
        self._tls = self._tls_tried = False
        self._unanswered = 0
        self._path = ""
        self.interval_s = LOOK_S

    @cached_property
    def _client(self) -> HealthClient | PlainClient:
        """Made with the first request: until somebody listens nothing of HTTP is imported."""
        return health_client(asks_once=self._watched.one_look)

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()

    def read(self) -> PortReading | None:
        server = self._watched.server
        identity = server.key if server else None
        if identity != self._server:
            self._server = identity
            self._was_ready = self._tls = self._tls_tried = False
            self._unanswered = 0
        reading = self._look(server)
        if reading is not None and reading.answer == "":
            reading = self._ask(reading, server)
            if server is not None and not server.args_known and self._watched.settings.port is None:
                reading = _only_if_its(reading)
        if reading is None:
            return None
        self.interval_s = self._next(reading)
        others = self._others(server) if server is not None and self._watched.settings.port is None else ""
        return replace(reading, note="; ".join(filter(None, (reading.note, others)))) if others else reading

    def _others(self, server: Server) -> str:
        """Which of its further ports are open: one request in flight, and rarely, is for the first one alone."""
        hosts, parts = reachable(server.args.host), []
        for port in server.args.further_ports:
            try:
                looked = self._further.setdefault(port, Listeners(self._watched.settings.proc_root))
                found = looked.find(server.pid, hosts, port, self._now())
            except OSError:
                return ""
            foreign = next((one for one in found if one.ours is False), None)
            words = f"is held by pid {foreign.pid}" if foreign is not None else "listens" if found else "is not open"
            parts.append(f"{port} {words}")
        return f"its other ports: {', '.join(parts)}" if parts else ""

    def _look(self, server: Server | None) -> PortReading | None:
        """The reading as far as /proc tells it; answer "" when a request is due. None: there is nothing to look at,
        as on a node without HTTP."""
        family = registry.get(server.family if server else "")
        self._path = family.health.path
        asked = self._watched.settings.port
        if server is None:
            return None if asked is None else self._look_at(None, ServerArgs().host, asked)
        args = server.args
        if asked is None and args.uds:
            return self._look_at_socket(server)
        if asked is None and args.headless:
            return None  # who listens on its default port is a stranger
        if asked is None and args.picks_port:
            return self._look_for_port(server)
        reading = self._look_at(server.pid, args.host, asked or server.port or family.default_port)
        if asked is None and server.port is None and not any(listener.ours for listener in reading.listeners):
            return self._look_for_port(server, UNTOLD)  # who listens on a port that nobody has named is a stranger
        return reading

    def _look_for_port(self, server: Server, untold: str = PICKS) -> PortReading:
        host = server.args.host if server.args_known else ""
        try:
            port, why = self._picked.find(server.key, host, untold)
        except OSError as err:
            port, why = None, f"{untold}, and its sockets cannot be read: {err.strerror}"
        if port is None:
            return PortReading(host=server.args.host, port=0, answer="skipped", path=self._path, note=why)
        return self._look_at(server.pid, host or "0.0.0.0", port)

    def _look_at_socket(self, server: Server) -> PortReading:
        blank = PortReading(host=server.args.uds, port=0, answer="", path=self._path, uds=server.args.uds)
        try:
            found = self._listeners.find_unix(server.pid, server.args.uds, self._now())
        except OSError as err:
            return replace(blank, answer="skipped", note=f"UNIX sockets cannot be read: {err.strerror}")
        return self._due(blank, found, server.pid)

    def _look_at(self, pid: int | None, host: str, port: int) -> PortReading:
        blank = PortReading(host=host, port=port, answer="", path=self._path)
        try:
            found = self._listeners.find(pid, reachable(host), port, self._now())
        except OSError as err:
            blank = replace(blank, note=f"listening sockets cannot be read: {err.strerror}")
            return blank if self._watched.settings.probe_http else replace(blank, answer="skipped")
        return self._due(replace(blank, asked=asked_host(host, found)), found, pid)

    def _due(self, blank: PortReading, found: tuple[Listener, ...], pid: int | None) -> PortReading:
        """With who listens, and whether a request is due."""
        reading = replace(blank, listeners=found)
        if not found:
            away = not blank.uds and self._namespace(pid)
            return replace(reading, answer="refused", note=_AWAY if away else "")
        if all(listener.ours is False for listener in found):
            return replace(reading, answer="skipped", note=_taken(reading))
        if not self._watched.settings.probe_http:
            return replace(reading, answer="skipped", note="asking for its health is switched off")
        return reading

    def _namespace(self, pid: int | None) -> str:
        """The server's network namespace when it is not ours ("" when it is, or cannot be read): 127.0.0.1 is
        another machine's there."""
        path = f"{self._watched.settings.proc_root}/{pid}/ns/net"
        try:
            return path if pid is not None and os.readlink(path) != os.readlink("/proc/self/ns/net") else ""
        except OSError:
            return ""

    def _ask(self, reading: PortReading, server: Server | None) -> PortReading:
        pid = server.pid if server else None
        secure = (server is not None and server.args.ssl) or self._tls
        if reading.uds and pid is not None:
            with connectable(self._watched.settings.proc_root, pid, reading.uds) as path:
                self._client.open(path)
                found = self._exchange(Target("", 0, secure, path))
            return self._answered(reading, secure, *found)
        target = Target(reading.asked or asked_host(reading.host, ()), reading.port, secure)
        self._client.open()  # importing httpx is no part of the latency
        namespace = self._namespace(pid)
        if not namespace:
            return self._answered(reading, secure, *self._exchange(target))
        reading = replace(reading, note="; ".join(filter(None, (reading.note, _AWAY))))
        try:
            found = InNamespace(namespace, lambda: self._exchange(target)).run()
        except OSError as err:
            note = f"{_AWAY}, and sgmon may not enter it ({err.strerror}): run it there, or with sudo"
            return replace(reading, answer="skipped", note=note)
        return self._answered(reading, secure, *found)

    def _answered(self, reading: PortReading, secure: bool, got: Answer, latency_s: float) -> PortReading:
        """The reading with what came of the request; what the next one depends on is remembered."""
        silent = got.answer in ("no_response", "timeout")
        self._was_ready = self._was_ready or got.status == 200
        self._unanswered = self._unanswered + 1 if silent else 0
        queued = max((listener.accept_queue or 0 for listener in reading.listeners), default=0)
        notes = [
            reading.note,
            got.note,
            "the port speaks TLS, although the arguments do not say so" if self._tls else "",
            f"{plural(queued, 'connection')} not accepted by the server yet" if silent and queued else "",
        ]
        return replace(
            reading,
            answer=got.answer,
            status=got.status,
            latency_s=None if got.answer in ("refused", "skipped") else latency_s,
            client=got.client,
            note="; ".join(filter(None, notes)),
            secure=secure or self._tls,
        )

    def _exchange(self, target: Target) -> tuple[Answer, float]:
        """One request, and a second one when the first shows that the port speaks TLS; the answer's latency."""
        start = self._now()
        got = self._get(target)
        if got.answer == "reset" and not got.note and not (target.secure or target.uds or self._tls_tried):
            self._tls_tried = True
            self._tls = speaks_tls(target, CONNECT_S)
            if self._tls:
                start = self._now()
                got = self._get(target._replace(secure=True))
        return got, self._now() - start

    def _get(self, target: Target) -> Answer:
        return self._client.get(target, self._path, ANSWER_S if self._was_ready else FIRST_ANSWER_S, CONNECT_S)

    def _next(self, reading: PortReading) -> float:
        if reading.status == 200:
            return READY_S
        if reading.answer in ("no_response", "timeout"):
            return float(min(FIRST_ANSWER_S * 2 ** (self._unanswered - 1), PAUSE_MOST_S))
        return LOOK_S if reading.answer in ("refused", "skipped") else STARTING_S


def _only_if_its(reading: PortReading) -> PortReading:
    """The answer of a port that no argument names: 200 and 503 are a server's; what else answers is the HTTP of the
    program around an engine, which knows no such path."""
    if reading.answer != "http" or reading.status in (200, 503):
        return reading
    note = f"it answers {reading.path} with {reading.status}, and no argument says that it is the server's"
    return replace(reading, answer="skipped", status=None, latency_s=None, note=note)


def _taken(reading: PortReading) -> str:
    first = reading.listeners[0]
    who = f"pid {first.pid}" + (f" ({clean(first.name, 60)})" if first.name else "")
    return f"{reading.what} is held by another process, {who}: not asked"
