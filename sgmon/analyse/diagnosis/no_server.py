"""There is no server: none has begun, it has another port, it cannot be looked for, or its command has ended."""

from __future__ import annotations

from sgmon.analyse.diagnosis.driver import driver_facts
from sgmon.analyse.diagnosis.holders import foreign_holders, look_step
from sgmon.analyse.diagnosis.orphans import orphan_facts
from sgmon.model import Candidate, Evidence, Missing, NextStep, Snapshot, Verdict
from sgmon.servers import names, registry

#: the name under which `sgmon run` says that what it started has ended
COMMAND = "command"


def no_server(snapshot: Snapshot) -> Verdict:
    """Why nothing is watched, and what to do."""
    ended = next((p for p in snapshot.probes if p.name == COMMAND and p.error), None)
    if ended is not None:
        return Verdict(
            "crashed",
            ended.error,
            phase="launch",
            confidence=1.0,
            rule="command-ended",
            next=(NextStep("Read what it said", ended.remedy),),
        )
    if snapshot.candidates and snapshot.asked_port is not None:
        seen = ", ".join(f"{one.port or 'unknown'} ({_which(one)})" for one in snapshot.candidates)
        return Verdict(
            "waiting",
            f"no server has port {snapshot.asked_port}; ports seen: {seen}",
            confidence=1.0,
            rule="no-such-port",
            next=(NextStep("Watch one of them", f"sgmon --pid {snapshot.candidates[0].pid}"),),
        )
    failed = next((p for p in snapshot.probes if p.name == "server" and p.error), None)
    gaps = () if failed is None else (Missing("server", failed.error, failed.remedy),)
    if failed is not None and not snapshot.looked_for:
        headline = f"whether a server runs is not known: {failed.error}"
        step = (NextStep(failed.remedy),) if failed.remedy else ()
        return Verdict("unknown", headline, confidence=1.0, rule="no-look", missing=gaps, next=step)
    looked = (Evidence("proc", f"looked for {snapshot.looked_for}"),) if snapshot.looked_for else ()
    held = foreign_holders(snapshot)
    left = orphan_facts(snapshot, held)
    return Verdict(
        "waiting",
        f"no {names.labels()} server yet",
        confidence=1.0,
        rule="no-server",
        evidence=(*driver_facts(snapshot), *held, *left, *looked),
        missing=gaps,
        next=look_step((*held, *left)) or (NextStep("If one runs, see what is hidden from sgmon", "sgmon doctor"),),
    )


def _which(one: Candidate) -> str:
    """ "vLLM, pid 733"."""
    family = f"{registry.get(one.family).label}, " if one.family else ""
    return f"{family}pid {one.pid}"
