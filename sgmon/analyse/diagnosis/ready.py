"""Ready, or not quite: the ready line, /health, and whose socket it is, together."""

from __future__ import annotations

from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.diagnosis.facts import since
from sgmon.model import Evidence, LogState, NextStep, PortReading, Role, Verdict

#: a ready line may come 22 ms before the port opens; longer means that it never will
OPEN_S = 15.0
#: seconds of 200 that stand for a ready line which cannot be seen
SETTLED_S = 3.0
#: of a log whose beginning was not read
WORKS = "the log tells of work on requests"


def ready(context: Context) -> Verdict | None:
    """ready, unhealthy, or None: still starting."""
    port = context.snapshot.port
    if context.args.node_rank > 0:
        return _other_node(context)
    ours = port_is_ours(port)
    ok = port is not None and port.answer == "http" and port.status == 200
    if context.was_ready:
        if ok and ours is not False:
            return _verdict_ready(context, ours)
        return _unhealthy(context, ours)
    if ok and ours and (context.snapshot.has_been_ready or _log_is_shared(context)):
        return _verdict_ready(context, ours)
    seen = ours or (ours is None and any(rank.role is Role.WORKER for rank in context.ranks))
    if ok and seen and _proves(context) and _log_is_partial(context):
        return _verdict_ready(context, ours)
    return None


def _log_is_shared(context: Context) -> bool:
    """Another server writes into the same file: the newest start in it may be that one's. The own 200 has held
    for a moment."""
    server = context.snapshot.server
    held_s = context.t - (context.snapshot.port_changed_t or 0.0)
    return server is not None and bool(server.log_writers) and held_s >= SETTLED_S and _proves(context)


def _proves(context: Context) -> bool:
    return context.family.health.ok_means_ready(context.version)


def _log_is_partial(context: Context) -> bool:
    """There is no log, or its beginning was not read (rotated, or skipped): the ready line may be in that part.
    Since 0.4.10 /health is 200 only after the warm-up; let it hold for a moment."""
    begun = {"args", "launch", "dist_init_begin", "load_begin"} & {m.name for m in context.snapshot.log.milestones}
    return not begun and context.t - (context.snapshot.port_changed_t or 0.0) >= SETTLED_S


def port_is_ours(port: PortReading | None) -> bool | None:
    """Does a listening socket belong to the server's own tree? None: not known."""
    if port is None or not port.listeners:
        return None
    if any(x.ours for x in port.listeners):
        return True
    return False if all(x.ours is False for x in port.listeners) else None


def port_holder(context: Context) -> str:
    """ "port 30000 is held by pid 4242 (python3 -m http.server)"; "" when it is free, our own or not known."""
    port = context.snapshot.port
    if port is None or port_is_ours(port) is not False or context.args.node_rank > 0:
        return ""
    holder = port.listeners[0]
    who = f"pid {holder.pid}" if holder.pid is not None else "another process"
    return f"{port.what} is held by {who}" + (f" ({holder.name})" if holder.name else "")


def still_says_200(context: Context, since_t: float) -> Evidence | None:
    """That our own port says 200 to a request of after ``since_t``, when something had ended; else None."""
    port = context.snapshot.port
    asked = context.asked_t
    if port is None or port.status != 200 or asked is None or port_is_ours(port) is False:
        return None
    if asked - (port.latency_s or 0.0) <= since_t:
        return None
    return Evidence(
        "port", f"{port.path} on {port.where} says 200 all the same: what watches it alone notices nothing"
    )


def _verdict_ready(context: Context, ours: bool | None) -> Verdict:
    port = context.snapshot.port
    assert port is not None
    evidence = []
    if context.snapshot.log.ready_line is not None:
        evidence.append(_ready_line(context))
    took = f" in {port.latency_s:.1f} s" if port.latency_s is not None else ""
    evidence.append(Evidence("port", f"{port.path} on {port.where} says 200{took}"))
    if ours:
        evidence.append(Evidence("port", "the listening socket is the server's own"))
    else:
        evidence.append(Evidence("port", "whose socket it is could not be read"))
    if context.snapshot.log.ready_line is None:
        evidence.append(Evidence("log", f"the ready line was not seen: {_why_no_line(context)}"))
    return Verdict(
        "ready",
        f"the server is ready on {port.where}",
        phase="serving",
        confidence=0.98 if ours and context.was_ready else 0.8,
        rule="ready",
        evidence=tuple(evidence),
    )


def _why_no_line(context: Context) -> str:
    server = context.snapshot.server
    if server is not None and server.log_writers:
        return f"the server of pid {', '.join(map(str, server.log_writers))} writes into the same file"
    return "no log, or its beginning was not read"


def _unhealthy(context: Context, ours: bool | None) -> Verdict | None:
    port = context.snapshot.port
    line = _ready_line(context)
    seen = next((m.seen_t for m in context.snapshot.log.milestones if m.name == "ready"), None)
    waited = context.t - seen if seen is not None else 0.0
    before = context.snapshot.verdict.rule
    headline, fact, rule = "", Evidence("port", ""), ""
    if port is None:
        return _soon(context, f"{_said(context)}; the port was not asked yet")
    if port.answer == "skipped" and ours is not False:  # a stranger on the port is never asked
        return (
            context.snapshot.verdict if context.snapshot.verdict.state == "ready" else _not_asked(context, port, ours)
        )
    changed = context.snapshot.port_changed_t or 0.0
    lasted = context.t - max(changed, seen if seen is not None else changed)
    asked_s = _asked_after(context, seen)
    if ours is False and port.listeners:
        holder = port.listeners[0]
        said = f"{WORKS}, but" if context.snapshot.log.ready_by_work else "the ready line is false:"
        headline = f"{said} {port.what} belongs to pid {holder.pid}, not to this server"
        fact = Evidence(
            "port",
            f"{port.where} is held by pid {holder.pid} {holder.name}".rstrip(),
            pid=holder.pid,
        )
        rule = "ready-foreign-port"
    elif port.answer == "http" and port.status == 503:
        if waited < OPEN_S and context.snapshot.verdict.state not in ("ready", "unhealthy"):
            # The answer may be older than the ready line, whatever the state was: stopped, slow, progressing.
            return _soon(context, f"{_said(context)}; waiting for the first /health 200")
        headline = f"/health says 503 although {_said(context)}"
        known = context.family.health.why_503(context.version, context.args)
        headline += f": {known}" if known else ""
        fact = Evidence("port", f"{port.path} says 503 for {since(context, changed)}")
        rule = "ready-503"
    elif port.answer in ("no_response", "timeout") and lasted >= context.family.health.timeout_s:
        headline = "/health does not answer"
        fact = Evidence("port", f"{port.where} accepts, and has not answered for {since(context, changed)}")
        rule = "ready-no-response"
    elif port.answer in ("refused", "reset") and waited >= OPEN_S and lasted >= 3.0 and asked_s >= OPEN_S:
        headline = f"{_said(context)}, but nothing listens on {port.where}"
        fact = Evidence("port", f"connections are {port.answer}")
        rule = "ready-refused"
    elif port.answer == "http" and port.status not in (200, None):
        headline = f"/health says {port.status} although {_said(context)}"
        fact = Evidence("port", f"{port.path} says {port.status}")
        rule = "ready-status"
    elif before == "ready" and context.snapshot.verdict.state == "ready":
        return context.snapshot.verdict
    else:
        return _soon(context, f"{_said(context)}; waiting for the first /health 200")
    url = port.curl
    return Verdict(
        "unhealthy",
        headline,
        phase="serving",
        since_t=changed,
        confidence=0.9,
        rule=rule,
        evidence=(line, fact),
        next=(NextStep("Ask it yourself; it may take 20 s", url),),
    )


def _asked_after(context: Context, seen_t: float | None) -> float:
    """Seconds from the ready line to the newest look at the port; a busy machine is asked late. 0 before the line."""
    asked = context.asked_t
    if asked is None or seen_t is None:
        return context.t - (seen_t or 0.0)
    return max(0.0, asked - seen_t)


def _not_asked(context: Context, port: PortReading, ours: bool | None) -> Verdict:
    """``--no-http``, or a name or namespace that is out of reach: two of the three signs of ready are not enough."""
    whose = "the server's own" if ours else "of an owner that cannot be seen"
    url = port.curl
    return Verdict(
        "unknown",
        f"{_said(context)} and the listening socket is {whose}; {port.path} is not asked",
        phase="serving",
        confidence=0.9,
        rule="ready-not-asked",
        evidence=(
            _ready_line(context),
            Evidence("port", f"not asked: {port.note or 'no reason is known'}"),
        ),
        next=(NextStep("Ask it yourself; it may take 20 s", url),),
    )


def _soon(context: Context, headline: str) -> Verdict:
    return Verdict(
        "progressing",
        headline,
        phase="ready",
        confidence=0.8,
        rule="ready-soon",
        evidence=(
            _ready_line(context),
            Evidence("port", _answer(context.snapshot.port)),
        ),
    )


def _said(context: Context) -> str:
    return WORKS if context.snapshot.log.ready_by_work else "the ready line is printed"


def _ready_line(context: Context) -> Evidence:
    return Evidence("log", ready_words(context.snapshot.log))


def ready_words(log: LogState) -> str:
    """The line that tells that the server was ready."""
    if log.ready_by_work:
        return f"line {log.ready_line} tells of work on requests; the ready line was not read"
    return f"the ready line is line {log.ready_line}"


def _answer(port: PortReading | None) -> str:
    if port is None:
        return "not asked yet"
    return f"{port.where} answers {port.status or port.answer}"


def _other_node(context: Context) -> Verdict | None:
    """A node of rank above 0 prints no ready line: its dummy health server says that its ranks are."""
    log = context.snapshot.log
    if log.dummy_health_line is None:
        return None
    return Verdict(
        "ready",
        f"node {context.args.node_rank}: its ranks are ready; whether the server is, only node 0 can tell",
        phase="serving",
        confidence=0.85,
        rule="ready-node",
        evidence=(
            Evidence("log", f"the dummy health server started in line {log.dummy_health_line}"),
            Evidence("port", f"{_answer(context.snapshot.port)}; a dummy server says 200 always"),
        ),
    )
