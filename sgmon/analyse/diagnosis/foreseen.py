"""will-fail: the start goes on, and cannot get ready; and doubts beside a green state."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.analyse import foreseen
from sgmon.analyse.diagnosis import usual
from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Evidence, Verdict
from sgmon.model.preflight import Forecast
from sgmon.units import duration, plural

#: states that say that the start goes on: to them a forecast adds what they cannot see
GOES_ON = frozenset({"progressing", "slow", "waiting-by-design"})
_MOST = 5
#: the time until the failure is told in steps of this, so that the headline does not change each second
STEP_S = 10.0


def with_forecast(context: Context, found: Verdict) -> Verdict:
    """``found``, or will-fail in its place. What has come further than the phase in which it had to fail has not
    failed: such a forecast is dropped (and counted against its rule when the start gets ready)."""
    goes_on = found.state in GOES_ON or (found.state == "unknown" and found.rule == "first-look")
    if not goes_on or found.rule == "ready-soon":
        return found
    ahead = _ahead(context)
    if not ahead:
        return replace(found, evidence=_with_doubts(context, found.evidence))
    first = min(ahead, key=lambda one: context.phases.order(one.phase))
    return Verdict(
        "will-fail",
        f"{first.text}: this start will fail {_where(context, first)}",
        phase=context.phase,
        confidence=0.95,
        rule=_rule(first),
        evidence=_evidence(context, found, first, ahead),
        next=(*((first.step,) if first.step is not None else ()), *found.next)[:3],
    )


def certain(context: Context) -> tuple[Evidence, ...]:
    """What will make this start fail, as facts beside another verdict."""
    ahead = _ahead(context)
    return tuple(Evidence(one.signal, f"{one.text}: this start will fail", pid=one.pid) for one in ahead[:1])


def _ahead(context: Context) -> list[Forecast]:
    """What will make this start fail, as far as it has not come further than that.

    In the phase in which the server opens its port, the owner of a new socket may be another one for one reading:
    what was not said before is not said then.
    """
    said, at = context.snapshot.verdict.rule, context.phases.order(context.phase)
    return [
        one
        for one in foreseen.will_fail(context.snapshot)
        if not one.phase
        or at < context.phases.order(one.phase)
        or (at == context.phases.order(one.phase) and (one.signal != "port" or said == _rule(one)))
    ]


def _rule(one: Forecast) -> str:
    return f"will-fail-{one.rule}"


def _where(context: Context, one: Forecast) -> str:
    """ "in the weight load, in about 3m10s"."""
    during = context.phases.during(one.phase)
    left_s = usual.until_phase_s(context.snapshot, context.phases, one.phase)
    return (
        during if left_s is None else f"{during}, in about {duration(max(STEP_S, round(left_s / STEP_S) * STEP_S))}"
    )


def _evidence(context: Context, found: Verdict, first: Forecast, ahead: list[Forecast]) -> tuple[Evidence, ...]:
    facts = [Evidence(first.signal, f"sure, because {first.why}", pid=first.pid)]
    facts += [Evidence(one.signal, one.text, pid=one.pid) for one in ahead if one is not first]
    return _with_doubts(context, (*facts, *found.evidence))


def _with_doubts(context: Context, evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The evidence, with one line for all warnings as its last."""
    found = foreseen.warnings(context.snapshot)
    if not found:
        return evidence[:_MOST]
    rest = f" (and {len(found) - 2} more)" if len(found) > 2 else ""
    words = f"{plural(len(found), 'warning')}: {'; '.join(one.text for one in found[:2])}{rest}"
    return (*evidence[: _MOST - 1], Evidence("check", words, value=len(found)))
