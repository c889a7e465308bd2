"""Ports, addresses and interfaces: what is held, what is not here, what cannot be resolved. Nothing is sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from sgmon.foresight.start import Start, doomed, doubt, fine
from sgmon.model import Listener
from sgmon.model.preflight import Forecast, Resolved
from sgmon.model.verdict import NextStep
from sgmon.text import clean, quoted
from sgmon.units import duration

#: characters of the name of a process in a headline
NAME = 48
#: what a log's clock may differ: lines come late, never early
AHEAD_S, BEHIND_S = 10.0, 60.0
_WILDCARDS = ("0.0.0.0", "::")


def http_port(start: Start) -> Iterator[Forecast]:
    """Nobody else listens on the HTTP port. bind(2): EADDRINUSE while another socket listens on the address, unless
    both have set SO_REUSEPORT, which the family tells."""
    args = start.args
    if args.node_rank > 0 or args.headless or args.uds or not args.port or start.facts.port is None:
        return
    check = f"port {start.args.port}"
    foreign = [one for one in start.facts.port if one.ours is False]
    if not foreign:
        yield fine("port", check, "nobody else listens there", "port")
        return
    held = next((one for one in foreign if _collides(one, start.args.host)), foreign[0])
    text = f"port {start.args.port} is held by {_who(held)}"
    step = NextStep("End that process, or start on another port", f"ps -o pid,ppid,user,etime,args -p {held.pid}")
    if start.family.start.shares_port(start.args) or not _collides(held, start.args.host):
        words = f"{text}; whether both may listen is not known"
        yield doubt("port", check, words, step, signal="port", pid=held.pid)
        return
    why = f"no second socket can be bound to it while pid {held.pid} listens; the server binds it only then"
    yield doomed("port", check, text, why, start.phase("port"), step, signal="port", pid=held.pid)


def rendezvous_port(start: Start) -> Iterator[Forecast]:
    """Nobody else listens where the ranks are to meet; on node 0 only, which opens it."""
    port, listeners = start.facts.rendezvous_port, start.facts.rendezvous
    if port is None or listeners is None or start.args.node_rank > 0:
        return
    check = f"rendezvous port {port}"
    foreign = [one for one in listeners if one.ours is False]
    if not foreign:
        yield fine("rendezvous-port", check, "nobody else listens there", "port")
        return
    held = foreign[0]
    text = f"the rendezvous port {port} is held by {_who(held)}"
    step = NextStep(
        "End that process, or name another rendezvous port", f"ps -o pid,ppid,user,etime,args -p {held.pid}"
    )
    elsewhere = start.family.start.rendezvous_variable
    if elsewhere and start.facts.variable(elsewhere):
        yield doubt("rendezvous-port", check, text, step, signal="port", pid=held.pid)
        return
    why = f"node 0 must listen on it, and cannot while pid {held.pid} does"
    yield doomed("rendezvous-port", check, text, why, start.phase("rendezvous"), step, signal="port", pid=held.pid)


def addresses(start: Start) -> Iterator[Forecast]:
    """The address to listen on is this machine's; the rendezvous' name can be resolved."""
    if start.facts.away:
        return
    for one in start.facts.resolved:
        if one.what == "host" and (start.args.uds or start.args.headless):
            continue  # no port is opened
        if one.error == "unknown":
            yield _unresolved(start, one.what, one.name, one.words)
        elif one.error:
            yield doubt(
                "address", f"{one.what} {one.name}", f"{one.name} could not be resolved in time", signal="net"
            )
        elif one.here is False:
            text = f"the address {one.name} to listen on is none of this machine's"
            step = NextStep("Listen on an address of this machine, or on 0.0.0.0", "ip -brief address")
            if start.args.node_rank > 0:
                yield doubt("address", f"host {one.name}", text, step, signal="net")
                continue
            why = "the kernel refuses to bind a socket to it (EADDRNOTAVAIL)"
            yield doomed("address", f"host {one.name}", text, why, start.phase("port"), step, signal="net")
        elif one.routed is False:
            yield _no_route(start, one)
        elif one.what == "rendezvous" and start.args.nnodes > 1 and all(map(_is_loopback, one.addresses)):
            which = "" if one.name in one.addresses else f" ({', '.join(one.addresses[:2])})"
            text = f"{one.name}{which} is this machine alone: other nodes cannot be met there"
            step = NextStep("Name an address of node 0 that the others can reach", f"getent hosts {quoted(one.name)}")
            yield doubt("loopback", f"{one.what} {one.name}", text, step, signal="net")
        else:
            yield fine("address", f"{one.what} {one.name}", ", ".join(one.addresses[:3]), "net")


def _no_route(start: Start, one: Resolved) -> Forecast:
    """The routing table of this machine leads to none of its addresses."""
    text = f"no route leads to {one.name} ({', '.join(one.addresses[:2])})"
    step = NextStep("Name an address that this machine can reach", f"ip route get {quoted(one.addresses[0])}")
    why = "the kernel refuses every connection to it (ENETUNREACH), and the ranks of this node must connect to it"
    return doomed("no-route", f"{one.what} {one.name}", text, why, start.phase("rendezvous"), step, signal="net")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _unresolved(start: Start, what: str, name: str, words: str) -> Forecast:
    """A name that another node brings may appear later: then it is a doubt. The rendezvous is node 0's own."""
    text = f"{name} cannot be resolved ({what})" + (f": {words}" if words else "")
    step = NextStep("Name an address that this machine can resolve", f"getent hosts {quoted(name)}")
    if start.args.node_rank > 0 and what == "rendezvous":
        return doubt("unresolved", f"{what} {name}", f"{text}; it may be once that node is there", step, signal="net")
    why = "the resolver knows no such name, and a socket can be bound to an address alone"
    if what == "rendezvous":
        why = "the resolver knows no such name, and no other node brings it: the server tries until its time-out"
    stage = "rendezvous" if what == "rendezvous" else "port"
    return doomed("unresolved", f"{what} {name}", text, why, start.phase(stage), step, signal="net")


def interfaces(start: Start) -> Iterator[Forecast]:
    """NCCL takes names as prefixes, "=" for exact ones and "^" for those to leave out (NCCL user guide,
    NCCL_SOCKET_IFNAME); gloo takes exact names (torch ProcessGroupGloo.cpp)."""
    if start.facts.away or not start.facts.interfaces:
        return
    up = dict(start.facts.interfaces)
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = start.facts.variable(name)
        wanted = [word for word in value.lstrip("=").split(",") if word]
        if not wanted or value.startswith("^"):
            continue
        gloo = name.startswith("GLOO")
        exact = gloo or value.startswith("=")
        here = {word: [each for each in up if (each == word if exact else each.startswith(word))] for word in wanted}
        lost = [word for word, found in here.items() if not found]
        step = NextStep(f"Unset {name}, or name one of: {', '.join(sorted(up))}", "ip -brief link")
        if not lost and any(up[each] for found in here.values() for each in found):
            yield fine("interface", name, value, "net")
        elif not lost:
            yield doubt("interface", name, f"{value}: the interface is down", step, signal="net")
        elif len(lost) == len(wanted) and _meets(start) and (gloo or not start.on_cpu):
            text = f"{name}={value}: no such interface here"
            why = "the ranks can open no socket for each other on an interface that is not there"
            yield doomed("interface", name, text, why, start.phase("rendezvous"), step, signal="net")
        else:
            yield doubt("interface", name, f"{value}: no interface {', '.join(lost)} here", step, signal="net")


def clock(start: Start) -> Iterator[Forecast]:
    """The log's clock is this host's: it is compared with the moments at which its lines come."""
    if start.skew_s is None:
        return
    if start.skew_s > AHEAD_S:
        text = f"the log's clock is {duration(start.skew_s)} ahead of this machine's"
    elif start.skew_s < -BEHIND_S:
        text = f"the log's clock is {duration(-start.skew_s)} behind this machine's, or its lines come so late"
    else:
        yield fine("clock", "clock", "the log's clock is this machine's", "log")
        return
    yield doubt("clock", "clock", text, NextStep("Compare the clocks of both machines", "date -u"), signal="log")


def _meets(start: Start) -> bool:
    """Whether there are ranks that must reach each other."""
    return start.args.tp * start.args.pp > 1


def _who(held: Listener) -> str:
    who = f"pid {held.pid}" if held.pid is not None else "another process"
    return who + (f" ({clean(held.name, NAME)})" if held.name else "")


def _collides(held: Listener, host: str) -> bool:
    """Whether both sockets are of one address family and their addresses overlap. "::" may be of IPv6 alone."""
    its = held.address.rpartition(":")[0].strip("[]")
    try:
        theirs, ours = ipaddress.ip_address(its), ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return False
    if theirs.version != ours.version:
        return False
    return its in _WILDCARDS or str(ours) in _WILDCARDS or theirs == ours
