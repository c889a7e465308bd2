"""What ends a vLLM start by itself, and when. Nearly nothing does: a launcher waits for its engine cores for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgmon.model import KillClock
from sgmon.servers.vllm.ranks import api_servers
from sgmon.servers.vllm.rules import asks_head

if TYPE_CHECKING:
    from sgmon.analyse.diagnosis.context import Context

#: envs.py VLLM_ENGINE_READY_TIMEOUT_S (0.14 on); it binds API servers that have not started the engine cores
ENGINE_READY_S = 600.0
#: v1/engine/core.py HANDSHAKE_TIMEOUT_MINS
HANDSHAKE_S = 300.0
#: executor/ray_utils.py PG_WAIT_TIMEOUT
PLACEMENT_GROUP_S = 1800.0


def kill_clocks(context: Context) -> tuple[KillClock, ...]:
    """The time-outs of vLLM, Ray and torch that run now."""
    clocks = (_rendezvous(context), _engine_ready(context), _handshake(context), _placement_group(context))
    return tuple(clock for clock in clocks if clock is not None)


def _rendezvous(context: Context) -> KillClock | None:
    """Only with ``--distributed-timeout-seconds`` (0.18 on): torch's default differs by backend (10 or 30 min)."""
    limit = context.args.dist_timeout_s
    if limit is None or context.phase != "dist_init":
        return None
    return _clock(context, "dist_init_begin", "the rendezvous (--distributed-timeout-seconds)", limit)


def _engine_ready(context: Context) -> KillClock | None:
    """Only with several API servers. They wait from about when the engine cores begin; the clock is theirs alone."""
    numbers = tuple(int(part) for part in context.version.split(".")[:2] if part.isdigit())
    done = {m.name for m in context.snapshot.log.milestones} & {"http_start", "http_up", "ready"}
    if api_servers(context.args, context.version) < 2 or done or (numbers and numbers < (0, 14)):
        return None
    env = dict(context.snapshot.start.env) if context.snapshot.start is not None else {}
    given = env.get("VLLM_ENGINE_READY_TIMEOUT_S", "")
    limit = float(given) if given.isdigit() else ENGINE_READY_S
    what = "an API server's wait for the engine cores (VLLM_ENGINE_READY_TIMEOUT_S)"
    return _clock(context, "engine_begin", what, limit)


def _handshake(context: Context) -> KillClock | None:
    """An engine core of a headless node without an answer of the head."""
    if not asks_head(context):
        return None
    begin_t = min(rank.activity_t for rank in context.ranks)
    return KillClock(
        "an engine core without an answer of the head node", begin_t + HANDSHAKE_S - context.t, HANDSHAKE_S
    )


def _placement_group(context: Context) -> KillClock | None:
    """Ray's resources: until the first worker begins."""
    done = {m.name for m in context.snapshot.log.milestones} & {"dist_init_begin", "load_begin"}
    if dict(context.args.raw).get("distributed_executor_backend") != "ray" or done:
        return None
    return _clock(context, "engine_begin", "the wait for a placement group of Ray", PLACEMENT_GROUP_S)


def _clock(context: Context, milestone: str, what: str, limit_s: float) -> KillClock | None:
    begin_t = context.first_passed(milestone)
    return None if begin_t is None else KillClock(what, begin_t + limit_s - context.t, limit_s)
